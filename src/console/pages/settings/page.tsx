import { useSignal } from "@preact/signals";
import { go } from "#console/app/router.ts";
import { theme, zone } from "#console/app/settings.ts";
import { Field, KeysSwitch, Select } from "#console/parts/fields.tsx";
import { PageHead } from "#console/parts/page.tsx";
import { Tabs } from "#console/parts/tabs.tsx";
import type { Loaded } from "#console/parts/use.ts";
import { ConfigTab } from "./config-tab.tsx";
import { KeysTab } from "./keys-tab.tsx";
import { TokensTab } from "./tokens-tab.tsx";
import "./settings.css";

/** Keys, the configuration, and the settings of this browser. */
function Page({ params: { tab = "keys" } }: { params: Record<string, string> }) {
  const head = useSignal<Loaded<unknown> | undefined>(undefined);
  const shown = tab === "browser" ? undefined : head.value;
  return (
    <>
      <PageHead title="Settings" of={shown} />
      <Tabs
        label="Settings"
        open={tab}
        onOpen={(id) => go(id === "keys" ? "/settings" : `/settings/${id}`, { replace: true })}
        tabs={[
          { id: "keys", name: "API keys", body: () => <KeysTab head={head} /> },
          { id: "tokens", name: "RPC tokens", body: () => <TokensTab head={head} /> },
          { id: "configuration", name: "Configuration", body: () => <ConfigTab head={head} /> },
          { id: "browser", name: "This browser", body: () => <BrowserTab /> },
        ]}
      />
    </>
  );
}

/** The settings that this browser stores. */
function BrowserTab() {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const themes = [
    ["system", "System"],
    ["light", "Light"],
    ["dark", "Dark"],
  ] as const;
  const zones = [
    ["local", `Local, ${timeZone}`],
    ["utc", "UTC"],
  ] as const;
  return (
    <section class="section form" aria-label="This browser">
      <Field word="Theme">
        <Select value={theme.value} choices={themes} choose={(next) => (theme.value = next)} />
      </Field>
      <Field word="Time zone">
        <Select value={zone.value} choices={zones} choose={(next) => (zone.value = next)} />
      </Field>
      <KeysSwitch>
        Single-key shortcuts (<kbd>?</kbd> lists them)
      </KeysSwitch>
      <p class="hint">Stored in this browser. The token is stored in the tab until the tab is closed.</p>
    </section>
  );
}

export default Page;
