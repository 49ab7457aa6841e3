import { PageHead } from "../../parts/page.tsx";

const Page = () => <PageHead title="Settings" />;
export default Page;
