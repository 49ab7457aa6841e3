import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect } from "preact/hooks";
import { clockTime } from "../lib/format.ts";
import { nameOf } from "../lib/identity.ts";
import { Icon } from "../parts/icon.tsx";
import { PageHead, Skeleton } from "../parts/page.tsx";
import { Note, TroubleNote } from "../parts/trouble.tsx";
import { useLoaded } from "../parts/use.ts";
import { isAway, now } from "./clock.ts";
import { activeKeys, useKeys } from "./keys.ts";
import { beginPage, hold, liveState, newsWait, nextTry, wasReset } from "./live.ts";
import { type Page, type PageGroup, pageOf, pages, whyNoPage } from "./pages.ts";
import { notReady, watchReadiness } from "./readiness.ts";
import { remember } from "./recent.ts";
import { go, hrefOf, path } from "./router.ts";
import { identity, mayRpc, signOutEverywhere } from "./session.ts";
import { nextTheme, zone } from "./settings.ts";
import { thing } from "./title.ts";
import { toasts } from "./toasts.ts";

const GROUPS: readonly PageGroup[] = ["Watch", "Run", "Manage"];
/** The pages in a narrow screen's bar; the rest is behind "More". */
const NARROW = new Set(["Live", "Activity", "Agents", "Sessions"]);

/** The frame around every page: navigation, the state of the live stream, the palette. */
export function Shell() {
  const at = pageOf(path.value);
  const overlay = useSignal<"palette" | "keys" | "more" | undefined>(undefined);
  useKeys([
    ...pages.map(({ name, key, path: to }) => ({ key: `g ${key}`, does: `Go to ${name}`, run: () => go(to) })),
    { key: "/", does: "Search and commands", run: () => (overlay.value = "palette") },
    { key: "?", does: "Keyboard shortcuts", run: () => (overlay.value = "keys") },
    { key: "t", does: "Change theme", run: nextTheme },
  ]);
  // Every page may say whether it is live; those that follow more hold more.
  useEffect(() => hold({ gateway: null }), [identity.value]);
  useEffect(watchReadiness, []);
  useEffect(beginPage, [at?.page]);
  useLayoutEffect(() => {
    const { page, params = {} } = at ?? {};
    thing.value = page?.name === "Settings" ? undefined : Object.values(params)[0];
    if (page) remember(page.name, path.value, params);
  }, [path.value]);
  const close = () => {
    overlay.value = undefined;
  };
  // Before the next key: what that opens belongs to the new page.
  useLayoutEffect(close, [path.value]);
  return (
    <div class="shell">
      <a class="skip" href="#page">
        Skip to the page
      </a>
      <nav class="side" aria-label="Pages">
        <a class="brand" href={hrefOf("/")}>
          <span class="mark" aria-hidden="true" /> Agent Gateway
        </a>
        <button type="button" class="jump" onClick={() => (overlay.value = "palette")}>
          <Icon name="search" size={14} /> Jump to… <kbd>{isMac ? "⌘K" : "Ctrl K"}</kbd>
        </button>
        {GROUPS.map((group) => (
          <section key={group} aria-label={group}>
            <h2>{group}</h2>
            <ul>
              {pages
                .filter((page) => page.group === group)
                .map((page) => (
                  <PageLink key={page.name} page={page} isHere={page === at?.page} />
                ))}
            </ul>
          </section>
        ))}
        <div class="side-foot">
          <LiveSign />
          <button type="button" class="icon-button" title="Theme (t)" aria-label="Theme" onClick={nextTheme}>
            <Icon name="sun-moon" />
          </button>
          <button type="button" class="icon-button" title="Sign out" aria-label="Sign out" onClick={signOutEverywhere}>
            <Icon name="log-out" />
          </button>
        </div>
      </nav>
      <main id="page" tabIndex={-1} class={at?.page.name.toLowerCase()}>
        {isAway.value && <Away />}
        <Role />
        {at ? <LazyPage key={at.page.name} page={at.page} params={at.params} /> : <NoPage />}
      </main>
      <nav class="bottom" aria-label="Main pages">
        <LiveSign />
        <ul>
          {pages
            .filter(({ name }) => NARROW.has(name))
            .map((page) => (
              <PageLink key={page.name} page={page} isHere={page === at?.page} />
            ))}
          <li>
            <button type="button" aria-expanded={overlay.value === "more"} onClick={() => (overlay.value = "more")}>
              <Icon name="ellipsis" /> More
            </button>
          </li>
        </ul>
      </nav>
      {overlay.value !== undefined && <Overlay which={overlay.value} close={close} />}
      <div class="toasts" role="status" aria-live="polite">
        {toasts.value.map(({ id, text, tone }) => (
          <div key={id} class="toast" data-tone={tone === "bad" ? "failed" : "done"}>
            {text}
          </div>
        ))}
      </div>
    </div>
  );
}

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);

function PageLink({ page, isHere }: { page: Page; isHere: boolean }) {
  const why = whyNoPage(page);
  return (
    <li>
      <a
        href={hrefOf(page.path)}
        class={why && "closed"}
        aria-current={isHere ? "page" : undefined}
        title={why ?? `g ${page.key}`}
      >
        <Icon name={page.icon} /> {page.name}
      </a>
    </li>
  );
}

const LIVE_WORDS = {
  off: "Not live",
  connecting: "Connecting",
  live: "Live",
  reconnecting: "Reconnecting",
  paused: "Paused",
} as const;

/** The state of the live stream, as a dot and words. */
function LiveSign() {
  const fault = liveState.value === "live" || liveState.value === "off" ? notReady.value : undefined;
  const isReloaded = wasReset.value && liveState.value === "live" && !fault;
  const state = fault ? "not-ready" : newsWait.value && liveState.value === "live" ? "paused" : liveState.value;
  const title = fault
    ? fault.detail
    : isReloaded
      ? "The live stream was interrupted. The page was reloaded."
      : state === "paused"
        ? "Paused: new rows are waiting."
        : mayRpc.value
          ? undefined
          : "The live stream needs the console token or an RPC token.";
  return (
    <span
      class="live-sign"
      data-state={state}
      data-calm={!isReloaded && state !== "reconnecting" && state !== "not-ready"}
      role="status"
      title={title}
    >
      <span class="live-dot" aria-hidden="true" />
      <span>
        {state === "not-ready" ? fault?.word : isReloaded ? "Live · caught up after a gap" : LIVE_WORDS[state]}
        {fault && <span class="narrow-word">. {fault.detail}</span>}
        {state === "reconnecting" && <NextTry />}
      </span>
    </span>
  );
}

/** What is shown is as it was. */
function Away() {
  return (
    <div class="away" role="alert">
      <p>Gateway unreachable · showing data from {clockTime(now.value, zone.value === "utc")}</p>
    </div>
  );
}

/** The seconds until the stream is tried again. They are not read out: the word before them is. */
function NextTry() {
  const at = useSignal(Date.now());
  useEffect(() => {
    const timer = setInterval(() => (at.value = Date.now()), 250);
    return () => clearInterval(timer);
  }, []);
  const seconds = Math.ceil((nextTry.value - at.value) / 1_000);
  return seconds > 0 ? <span aria-hidden="true"> in {seconds} s</span> : null;
}

/** The signed-in identity, if it is not the console token. */
function Role() {
  const who = identity.value;
  if (!who || who.kind === "console") return null;
  return (
    <p class="strip">
      Signed in with <bdi>{nameOf(who)}</bdi>
      {who.kind === "key"
        ? ": RPC pages and key management are off. "
        : ": pages that need REST or other permissions are off. "}
      <button type="button" class="link" onClick={signOutEverywhere}>
        Use another token
      </button>
    </p>
  );
}

/** A page, loaded when it is first wanted. */
function LazyPage({ page, params }: { page: Page; params: Record<string, string> }) {
  const why = whyNoPage(page, params);
  if (why !== undefined) return <Closed page={page} why={why} />;
  return <Loaded page={page} params={params} />;
}

/** The first page that the identity can open replaces the start page. */
function Closed({ page, why }: { page: Page; why: string }) {
  const open = pages.find((one) => one.path !== "/" && whyNoPage(one) === undefined);
  useLayoutEffect(() => {
    if (page.path === "/" && open) go(open.path, { replace: true });
  }, []);
  return (
    <>
      <PageHead title={page.name} />
      <Note tone="warning">{why}</Note>
    </>
  );
}

function Loaded({ page, params }: { page: Page; params: Record<string, string> }) {
  const { value, error } = useLoaded(() => page.load());
  const Body = value.value?.default;
  if (error.value !== undefined) return <TroubleNote error={error.value} retry={() => location.reload()} />;
  if (Body) return <Body params={params} />;
  return (
    <>
      <PageHead title={page.name} />
      <Skeleton />
    </>
  );
}

function NoPage() {
  return (
    <div class="stack empty">
      <h1>Page not found</h1>
      <p>
        The console has no page at this address. Open <a href={hrefOf("/")}>Live</a>, or press <kbd>/</kbd> to search.
      </p>
    </div>
  );
}

/** The palette and the list of keys, which lie over the page. They are loaded when first opened. */
function Overlay({ which, close }: { which: "palette" | "keys" | "more"; close: () => void }) {
  const { Overlays } = useLoaded(() => import("./overlays.tsx")).value.value ?? {};
  return Overlays ? <Overlays which={which} close={close} keys={activeKeys.value} /> : null;
}
