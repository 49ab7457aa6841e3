import { Dialog } from "../parts/dialog.tsx";
import { KeysSwitch } from "../parts/fields.tsx";
import { Icon } from "../parts/icon.tsx";
import type { KeyAction } from "./keys.ts";
import { pages } from "./pages.ts";
import { Palette } from "./palette.tsx";
import { hrefOf } from "./router.ts";
import { signOutEverywhere } from "./session.ts";
import { nextTheme } from "./settings.ts";

type OverlaysOf = { which: string; close: () => void; keys: readonly KeyAction[] };

export function Overlays({ which, close, keys }: OverlaysOf) {
  return which === "palette" ? (
    <Palette close={close} keys={keys} />
  ) : which === "keys" ? (
    <KeyList close={close} keys={keys} />
  ) : (
    <MorePages close={close} />
  );
}

/** All keys that act on this page. */
function KeyList({ close, keys }: Omit<OverlaysOf, "which">) {
  return (
    <Dialog title="Keyboard shortcuts" close={close}>
      <KeysSwitch>Single-key shortcuts</KeysSwitch>
      <dl class="facts">
        {[{ key: "⌘K or Ctrl K", does: "Search and commands, in fields too" }, ...keys].map(({ key, does }) => (
          <div key={key}>
            <dt class="muted">
              <kbd>{key}</kbd>
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}

/** All pages, for a screen that is too narrow for the list at its side. */
function MorePages({ close }: { close: () => void }) {
  return (
    <Dialog title="Pages" close={close}>
      <ul class="more-pages">
        {pages.map(({ name, icon, path }) => (
          <li key={name}>
            <a href={hrefOf(path)} onClick={close}>
              <Icon name={icon} /> {name}
            </a>
          </li>
        ))}
        <li>
          <button type="button" onClick={nextTheme}>
            <Icon name="sun-moon" /> Theme
          </button>
        </li>
        <li>
          <button type="button" onClick={signOutEverywhere}>
            <Icon name="log-out" /> Sign out
          </button>
        </li>
      </ul>
    </Dialog>
  );
}
