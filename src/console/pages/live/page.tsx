import { PageHead } from "../../parts/page.tsx";

const Page = () => <PageHead title="Live" />;
export default Page;
