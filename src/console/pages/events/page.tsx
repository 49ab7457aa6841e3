import { PageHead } from "#console/parts/page.tsx";

const Page = () => <PageHead title="Events" />;
export default Page;
