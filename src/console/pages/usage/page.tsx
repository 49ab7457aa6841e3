import { PageHead } from "#console/parts/page.tsx";

const Page = () => <PageHead title="Usage" />;
export default Page;
