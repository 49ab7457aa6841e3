import { PageHead } from "#console/parts/page.tsx";

const Page = () => <PageHead title="Live" />;
export default Page;
