import { PageHead } from "../../parts/page.tsx";

const Page = () => <PageHead title="Usage" />;
export default Page;
