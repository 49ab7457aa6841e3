import { PageHead } from "#console/parts/page.tsx";

const Page = () => <PageHead title="API" />;
export default Page;
