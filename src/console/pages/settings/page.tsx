import { PageHead } from "#console/parts/page.tsx";

const Page = () => <PageHead title="Settings" />;
export default Page;
