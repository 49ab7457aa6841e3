import { go } from "#console/app/router.ts";
import { PageHead } from "#console/parts/page.tsx";
import { Tabs } from "#console/parts/tabs.tsx";
import { BrowserTab } from "./browser-tab.tsx";
import { ConfigTab } from "./config-tab.tsx";
import { KeysTab } from "./keys-tab.tsx";
import { TokensTab } from "./tokens-tab.tsx";
import "./settings.css";

/** Keys, what the gateway runs with, and what this browser has chosen. */
const Page = ({ params: { tab = "keys" } }: { params: Record<string, string> }) => (
  <>
    <PageHead title="Settings" />
    <Tabs
      label="Settings"
      open={tab}
      onOpen={(id) => go(id === "keys" ? "/settings" : `/settings/${id}`, { replace: true })}
      tabs={[
        { id: "keys", name: "API keys", body: () => <KeysTab /> },
        { id: "tokens", name: "RPC tokens", body: () => <TokensTab /> },
        { id: "configuration", name: "Configuration", body: () => <ConfigTab /> },
        { id: "browser", name: "This browser", body: () => <BrowserTab /> },
      ]}
    />
  </>
);

export default Page;
