import { useSignal } from "@preact/signals";
import { go } from "#console/app/router.ts";
import { PageHead } from "#console/parts/page.tsx";
import { Tabs } from "#console/parts/tabs.tsx";
import { BrowserTab } from "./browser-tab.tsx";
import { ConfigTab } from "./config-tab.tsx";
import { KeysTab } from "./keys-tab.tsx";
import type { ReadState } from "./read-state.ts";
import { TokensTab } from "./tokens-tab.tsx";
import "./settings.css";

/** Keys, what the gateway runs with, and what this browser has chosen. */
function Page({ params: { tab = "keys" } }: { params: Record<string, string> }) {
  const read = useSignal<ReadState | undefined>(undefined);
  return (
    <>
      <PageHead title="Settings" updated={read.value?.at.value} refresh={read.value?.reload} />
      <Tabs
        label="Settings"
        open={tab}
        onOpen={(id) => go(id === "keys" ? "/settings" : `/settings/${id}`, { replace: true })}
        tabs={[
          { id: "keys", name: "API keys", body: () => <KeysTab read={read} /> },
          { id: "tokens", name: "RPC tokens", body: () => <TokensTab read={read} /> },
          { id: "configuration", name: "Configuration", body: () => <ConfigTab read={read} /> },
          { id: "browser", name: "This browser", body: () => <BrowserTab /> },
        ]}
      />
    </>
  );
}

export default Page;
