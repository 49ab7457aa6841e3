import { PageHead } from "../../parts/page.tsx";

const Page = () => <PageHead title="API" />;
export default Page;
