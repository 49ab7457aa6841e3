import { PageHead } from "../../parts/page.tsx";

const Page = () => <PageHead title="Webhooks" />;
export default Page;
