import { PageHead } from "#console/parts/page.tsx";

const Page = () => <PageHead title="Sessions" />;
export default Page;
