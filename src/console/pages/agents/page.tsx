import { PageHead } from "../../parts/page.tsx";

const Page = () => <PageHead title="Agents" />;
export default Page;
