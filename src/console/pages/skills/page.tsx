import { PageHead } from "../../parts/page.tsx";

const Page = () => <PageHead title="Skills" />;
export default Page;
