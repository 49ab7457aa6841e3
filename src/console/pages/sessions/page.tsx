import { PageHead } from "../../parts/page.tsx";

const Page = () => <PageHead title="Sessions" />;
export default Page;
