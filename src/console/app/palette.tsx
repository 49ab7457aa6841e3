import uFuzzy from "@leeoniya/ufuzzy";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { kindOfId, looksLikeId } from "../lib/ids.ts";
import { type Entry, ranked } from "../lib/palette.ts";
import { Dialog } from "../parts/dialog.tsx";
import { findNotifications } from "../parts/find-notifications.ts";
import { Icon } from "../parts/icon.tsx";
import { rest, rpc } from "./api.ts";
import type { KeyAction } from "./keys.ts";
import { pages, whyNoPage } from "./pages.ts";
import { recentBut } from "./recent.ts";
import { go, path } from "./router.ts";
import { signOutEverywhere, whyNot } from "./session.ts";
import { nextTheme } from "./settings.ts";

const fuzzy = new uFuzzy({ intraMode: 1 });
function search(names: string[], asked: string): readonly number[] {
  const [found, , order] = fuzzy.search(names, asked);
  return found && order ? order.map((n) => found[n] as number) : (found ?? []);
}

/** One field for everything: an id of any kind, the actions of this page, what was shown before, agents and pages. */
export function Palette({ close, keys }: { close: () => void; keys: readonly KeyAction[] }) {
  const text = useSignal("");
  const chosen = useSignal(0);
  const agents = useSignal<readonly Agent[]>([]);
  const byId = useSignal<{ entries: Entry[]; isAsking: boolean } | undefined>(undefined);
  const list = useRef<HTMLUListElement>(null);
  // What the page offers when the palette is opened over it.
  const here = useRef<Entry[]>(undefined);
  here.current ??= actionsHere(keys);

  useEffect(() => {
    if (whyNot("agent.list") === undefined)
      rpc()
        .agent.list()
        .then((found) => (agents.value = found.agents))
        .catch(() => {});
  }, []);

  const asked = text.value.trim();
  useEffect(() => {
    byId.value = looksLikeId(asked) ? { entries: [], isAsking: true } : undefined;
    if (!byId.peek()) return undefined;
    let isOld = false;
    const timer = setTimeout(async () => {
      const entries = await lookUp(asked);
      if (!isOld) byId.value = { entries, isAsking: false };
    }, 150);
    return () => {
      isOld = true;
      clearTimeout(timer);
    };
  }, [asked]);

  const all = [
    ...here.current,
    ...recent(),
    ...agents.value.flatMap(entriesOf),
    ...pagesOf(),
    ...elsewhere(here.current),
  ];
  const entries = [...(byId.value?.entries ?? []), ...ranked(asked, all, search)];
  const at = Math.min(chosen.value, Math.max(0, entries.length - 1));
  const run = (entry: Entry | undefined) => {
    if (!entry || entry.why !== undefined) return;
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
        placeholder="Action, agent, page or ID"
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
            key={`${entry.group} ${entry.name} ${entry.hint}`}
            id={`palette-${n}`}
            role="option"
            aria-selected={n === at}
            aria-disabled={entry.why !== undefined}
            onMouseMove={() => (chosen.value = n)}
            onClick={() => run(entry)}
            onKeyDown={() => {}}
          >
            <Icon name={entry.icon} />
            <span class="cut">{entry.name}</span>
            <span class="cut faint">{entry.why ?? entry.hint}</span>
            {entry.keys?.split(" ").map((key) => (
              <kbd key={key}>{key}</kbd>
            ))}
          </li>
        ))}
      </ul>
      <p class="hint" role="status">
        {entries.length > 0
          ? "Enter opens, Escape closes."
          : byId.value?.isAsking
            ? "Looking up this ID…"
            : byId.value
              ? (whyNoLookUp(asked) ??
                "No matches for this ID. Old records are deleted (recorder.entries, sessions.retention).")
              : "No matches. Paste a full ID to look it up."}
      </p>
    </Dialog>
  );
}

type Agent = { agentName: string; paused?: unknown };

/** The keys of the frame. */
const OWN_KEYS = new Set(["/", "j", "k", "t", "?", "Escape"]);

/** The buttons of the page, except those in table rows, and the keys without a button. */
function actionsHere(keys: readonly KeyAction[]): Entry[] {
  const buttons = [...document.querySelectorAll<HTMLElement>("#page :is(a, button).button")].filter(
    (button) => !button.closest("table, dialog, form") && !button.matches(":disabled") && button.checkVisibility(),
  );
  const shown = buttons.map((button): Entry => {
    const [words, reason] = [button.cloneNode(true) as Element, button.querySelector(".sr-only")?.textContent];
    for (const part of words.querySelectorAll("kbd, .sr-only, svg")) part.remove();
    return {
      group: "action",
      // A button with an icon only has its name as a label, with the reason behind it.
      name: words.textContent?.trim() || (button.ariaLabel ?? "").replace(reason ?? "", ""),
      icon: "chevron-right",
      hint: "This page",
      keys: button.getAttribute("aria-keyshortcuts") ?? button.querySelector("kbd")?.textContent ?? undefined,
      why: button.ariaDisabled === "true" ? (reason ?? "").replace(/^: /, "") || "Unavailable" : undefined,
      run: () => button.click(),
    };
  });
  const bound = keys
    .filter(({ key }) => !key.startsWith("g ") && !OWN_KEYS.has(key) && !shown.some((entry) => entry.keys === key))
    .map(({ key, does, run }): Entry => ({ group: "action", name: does, icon: "terminal", keys: key, run }));
  return [...shown.filter(({ name }) => name !== ""), ...bound];
}

function recent(): Entry[] {
  return recentBut(path.peek()).map(({ name, page, path: to }) => {
    return { group: "recent", name, icon: "history", hint: page, run: () => go(to) };
  });
}

function pagesOf(): Entry[] {
  const all = pages.map((page): Entry => {
    const { name, icon, path: to, key } = page;
    return { group: "page", name, icon, keys: `g ${key}`, why: whyNoPage(page), run: () => go(to) };
  });
  const schedules = { name: "Schedules", icon: "calendar-clock", hint: "Agents", why: whyNot("rest") };
  return [
    ...all,
    { group: "page", ...schedules, run: () => go("/schedules") },
    { group: "page", name: "Theme", icon: "sun-moon", keys: "t", run: nextTheme },
  ];
}

/** An agent, and the button of its page that pauses it. */
function entriesOf({ agentName, paused }: Agent): Entry[] {
  const to = `/agents/${encodeURIComponent(agentName)}`;
  const act = paused ? "Resume" : "Pause";
  return [
    { group: "agent", name: agentName, icon: "bot", hint: "Agent", run: () => go(to) },
    { ...action(`${act} ${agentName}`, paused ? "play" : "pause", to, act), why: whyNot("rest") },
  ];
}

/** The actions of other pages, where this page does not have them. */
function elsewhere(here: readonly Entry[]): Entry[] {
  return [
    { ...action("Create a key", "key-round", "/settings"), why: whyNot("keys") },
    { ...action("Send a test webhook", "webhook", "/webhooks"), why: whyNot("rest") },
    { group: "elsewhere" as const, name: "Sign out", icon: "log-out", hint: "All tabs", run: signOutEverywhere },
  ].filter(({ name }) => !here.some((entry) => entry.name === name));
}

function action(name: string, icon: string, to: string, button = name): Entry {
  return { group: "elsewhere", name, icon, hint: "Action", run: () => void press(to, button) };
}

/** The time that a page has to show the button which was asked for. */
const PRESS_MS = 5_000;

/** Goes to a page and presses a button there. What is dangerous asks first, as it does for a click. */
async function press(to: string, words: string): Promise<void> {
  go(to);
  const end = performance.now() + PRESS_MS;
  while (performance.now() < end && path.peek() === to) {
    const entry = actionsHere([]).find(({ name, why }) => name === words && why === undefined);
    if (entry) return entry.run();
    await new Promise(requestAnimationFrame);
  }
}

/** The reason why the token may not read a record with this id. Only sessions are read by RPC. */
function whyNoLookUp(id: string): string | undefined {
  return whyNot("rest") ?? (kindOfId(id) === undefined ? whyNot("session.get") : undefined);
}

/** Everything that the gateway has with an id: the thing itself first, then the requests that it belongs to. */
async function lookUp(id: string): Promise<Entry[]> {
  const kind = kindOfId(id);
  const entry = (name: string, hint: string, icon: string, to: string): Entry => {
    return { group: "id", name, hint, icon, run: () => go(to) };
  };
  const found = await Promise.allSettled([
    kind === "event"
      ? rest()
          .events.get(id)
          .then(({ status }) => [entry(id, `Event, ${status}`, "calendar-clock", `/e/${id}`)])
      : [],
    kind === "notification"
      ? findNotifications(id).then((all) =>
          all.map(({ notification_id, type, state }) =>
            entry(
              notification_id,
              `Notification, ${type}, ${state}`,
              "send",
              `/n/${encodeURIComponent(notification_id)}`,
            ),
          ),
        )
      : [],
    kind === undefined && whyNot("session.get") === undefined
      ? rpc()
          .session.get({ sessionId: id, limit: 1 })
          .then(({ session: { sessionId } }) => [
            entry(sessionId, "Session", "messages-square", `/s/${encodeURIComponent(sessionId)}`),
          ])
      : [],
    // A turn is seen best in the timeline of its request.
    rest()
      .deliveries.list({ id, limit: 5 })
      .then(({ deliveries }) =>
        deliveries.map(({ delivery_id, operation, outcome }) =>
          entry(delivery_id, `Request, ${operation}, ${outcome}`, "activity", `/d/${delivery_id}`),
        ),
      ),
    kind === "turn"
      ? rest()
          .turns.get(id)
          .then(({ status }) => [entry(id, `Turn, ${status}`, "messages-square", `/t/${id}`)])
      : [],
  ]);
  return found.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
}
