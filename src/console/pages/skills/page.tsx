import { PageHead } from "#console/parts/page.tsx";

const Page = () => <PageHead title="Skills" />;
export default Page;
