import { PageHead } from "#console/parts/page.tsx";

const Page = () => <PageHead title="Webhooks" />;
export default Page;
