import { PageHead } from "#console/parts/page.tsx";

const Page = () => <PageHead title="Agents" />;
export default Page;
