import uFuzzy from "@leeoniya/ufuzzy";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { kindOfId, looksLikeId } from "../lib/ids.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Icon } from "../parts/icon.tsx";
import { rest, rpc } from "./api.ts";
import type { KeyAction } from "./keys.ts";
import { pages } from "./pages.ts";
import { go, hrefOf } from "./router.ts";
import { signOutEverywhere, whyNot } from "./session.ts";
import { keysOn, nextTheme } from "./settings.ts";

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

type Entry = { name: string; hint: string; icon: string; run: () => void };

const fuzzy = new uFuzzy({ intraMode: 1 });

/** One field for everything: an id of any kind, a page, an agent, what can be done here. */
function Palette({ close, keys }: Omit<OverlaysOf, "which">) {
  const text = useSignal("");
  const chosen = useSignal(0);
  const agents = useSignal<readonly string[]>([]);
  const byId = useSignal<{ text: string; entries: Entry[]; isAsking: boolean } | undefined>(undefined);
  const list = useRef<HTMLUListElement>(null);

  useEffect(() => {
    if (whyNot("agent.list") !== undefined) return;
    rpc()
      .agent.list()
      .then(({ agents: found }) => (agents.value = found.map(({ agentName }) => agentName)))
      .catch(() => {});
  }, []);

  const asked = text.value.trim();
  useEffect(() => {
    if (!looksLikeId(asked)) {
      byId.value = undefined;
      return undefined;
    }
    byId.value = { text: asked, entries: [], isAsking: true };
    const timer = setTimeout(async () => {
      const entries = await lookUp(asked);
      if (text.peek().trim() === asked) byId.value = { text: asked, entries, isAsking: false };
    }, 150);
    return () => clearTimeout(timer);
  }, [asked]);

  const entries = [...(byId.value?.entries ?? []), ...ranked(asked, entriesOf(agents.value, keys))].slice(0, 12);
  const at = Math.min(chosen.value, Math.max(0, entries.length - 1));
  const run = (entry: Entry | undefined) => {
    if (!entry) return;
    close();
    entry.run();
  };
  return (
    <Dialog title="Search and commands" close={close} size="wide palette">
      <input
        type="text"
        class="palette-field"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={entries.length > 0 ? `palette-${at}` : undefined}
        aria-label="Search"
        placeholder="An id, a page, an agent, a command"
        autoFocus
        spellcheck={false}
        value={text.value}
        onInput={({ currentTarget }) => {
          text.value = currentTarget.value;
          chosen.value = 0;
        }}
        onKeyDown={(event) => {
          const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
          if (step !== 0) {
            event.preventDefault();
            chosen.value = Math.min(entries.length - 1, Math.max(0, at + step));
            list.current?.children[chosen.value]?.scrollIntoView({ block: "nearest" });
          } else if (event.key === "Enter") {
            event.preventDefault();
            run(entries[at]);
          }
        }}
      />
      <ul class="palette-list" id="palette-list" role="listbox" aria-label="Results" ref={list}>
        {entries.map((entry, n) => (
          <li
            key={`${entry.name} ${entry.hint}`}
            id={`palette-${n}`}
            role="option"
            aria-selected={n === at}
            onMouseMove={() => (chosen.value = n)}
            onClick={() => run(entry)}
            onKeyDown={() => {}}
          >
            <Icon name={entry.icon} />
            <span>{entry.name}</span>
            <span class="faint">{entry.hint}</span>
          </li>
        ))}
      </ul>
      <p class="hint" role="status">
        {byId.value?.isAsking
          ? "Asking the gateway for this id…"
          : byId.value && entries.length === 0
            ? "The gateway keeps nothing with this id any more. recorder.entries and sessions.retention say how much it keeps."
            : entries.length === 0
              ? "No page, agent or command is called so. An id is looked up once it is whole."
              : "Enter opens, Escape closes."}
      </p>
    </Dialog>
  );
}

function entriesOf(agents: readonly string[], keys: readonly KeyAction[]): Entry[] {
  return [
    ...pages.map(({ name, icon, path, key }) => ({ name, icon, hint: `page, g ${key}`, run: () => go(path) })),
    ...agents.map((name) => ({
      name,
      icon: "bot",
      hint: "agent",
      run: () => go(`/agents/${encodeURIComponent(name)}`),
    })),
    ...keys
      .filter(({ key }) => !key.startsWith("g ") && !["/", "j", "k", "?"].includes(key))
      .map(({ key, does, run }) => ({ name: does, icon: "terminal", hint: `key ${key}`, run })),
    { name: "Sign out", icon: "log-out", hint: "command", run: signOutEverywhere },
  ];
}

function ranked(asked: string, entries: Entry[]): Entry[] {
  if (asked === "") return entries;
  const names = entries.map(({ name }) => name);
  const [found, , order] = fuzzy.search(names, asked);
  if (!found) return [];
  return (order ? order.map((n) => found[n] as number) : found).map((n) => entries[n] as Entry);
}

/** Everything that the gateway has with an id: the thing itself first, then the requests that it belongs to. */
async function lookUp(id: string): Promise<Entry[]> {
  const kind = kindOfId(id);
  const entry = (name: string, hint: string, icon: string, to: string): Entry => ({
    name,
    hint,
    icon,
    run: () => go(to),
  });
  const found = await Promise.allSettled([
    kind === "event"
      ? rest()
          .events.get(id)
          .then(({ status }) => [entry(id, `event, ${status}`, "calendar-clock", `/e/${id}`)])
      : [],
    kind === undefined && whyNot("session.get") === undefined
      ? rpc()
          .session.get({ sessionId: id, limit: 1 })
          .then(({ session: { sessionId } }) => [
            entry(sessionId, "session", "messages-square", `/s/${encodeURIComponent(sessionId)}`),
          ])
      : [],
    // A turn is seen best in the timeline of its request.
    rest()
      .deliveries.list({ id, limit: 5 })
      .then(({ deliveries }) =>
        deliveries.map(({ delivery_id, operation, outcome }) =>
          entry(delivery_id, `delivery, ${operation}, ${outcome}`, "activity", `/d/${delivery_id}`),
        ),
      ),
    kind === "turn"
      ? rest()
          .turns.get(id)
          .then(({ status }) => [entry(id, `turn, ${status}`, "messages-square", `/t/${id}`)])
      : [],
  ]);
  return found.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
}

/** All keys that act on this page. */
function KeyList({ close, keys }: Omit<OverlaysOf, "which">) {
  return (
    <Dialog title="Keys" close={close}>
      <label class="switch">
        <input
          type="checkbox"
          checked={keysOn.value === "on"}
          onChange={({ currentTarget }) => (keysOn.value = currentTarget.checked ? "on" : "off")}
        />
        Single keys act on pages
      </label>
      <dl class="key-list">
        {[{ key: "⌘K or Ctrl K", does: "Search and commands, in fields too" }, ...keys].map(({ key, does }) => (
          <div key={key}>
            <dt>
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
