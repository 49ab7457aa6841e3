import { PageHead } from "../../parts/page.tsx";

const Page = () => <PageHead title="Events" />;
export default Page;
