import { keysOn, theme, zone } from "#console/app/settings.ts";
import { Field } from "#console/parts/fields.tsx";

/** The settings that this browser remembers. */
export function BrowserTab() {
  return (
    <section class="section form" aria-label="This browser">
      <Field word="Theme">
        <select
          value={theme.value}
          onChange={({ currentTarget }) => {
            theme.value = currentTarget.value as typeof theme.value;
          }}
        >
          <option value="system">As the system</option>
          <option value="light">Light</option>
          <option value="dark">Dark</option>
        </select>
      </Field>
      <Field word="Time zone">
        <select
          value={zone.value}
          onChange={({ currentTarget }) => {
            zone.value = currentTarget.value as typeof zone.value;
          }}
        >
          <option value="local">Local, {Intl.DateTimeFormat().resolvedOptions().timeZone}</option>
          <option value="utc">UTC</option>
        </select>
      </Field>
      <label class="switch">
        <input
          type="checkbox"
          checked={keysOn.value === "on"}
          onChange={({ currentTarget }) => {
            keysOn.value = currentTarget.checked ? "on" : "off";
          }}
        />
        <span>
          Single keys act on pages (press <kbd>?</kbd> for the list)
        </span>
      </label>
      <p class="hint">These stay in this browser. The token stays in this tab, and is gone when the tab is closed.</p>
    </section>
  );
}
