import { existsSync } from "node:fs";
import { type Browser, type BrowserContextOptions, chromium, type Page } from "playwright-core";
import { afterAll, expect, it } from "vitest";
import { type GatewayProcess, type ProcessOptions, startProcess } from "#test/harness/process.ts";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
/** It runs as root in a container, and can reach only the gateway. */
const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
];

/** The tokens of the gateways in tests of pages. */
export const TOKENS = {
  console: "console-token-of-the-pages-1",
  admin: "admin-key-of-the-pages-test-1",
  chat: "chat-key-of-the-pages-test-12",
  rpc: "rpc-token-of-the-pages-test-1",
  webhook: "webhook-token-of-the-pages-12",
} as const;

const CONFIG = {
  gateway: {
    rest: {
      auth: {
        keys: [
          { name: "ci", key: TOKENS.chat },
          { name: "ops", key: TOKENS.admin, scopes: ["admin"] },
        ],
      },
    },
    rpc: { auth: { tokens: [{ name: "ops", token: TOKENS.rpc, permissions: "*" }] } },
    console: { token: TOKENS.console },
    defaultAgent: "main",
  },
  webhooks: { token: TOKENS.webhook },
  agents: { main: { backend: "echo", description: "Repeats each message." } },
};

/**
 * Declares tests that need a browser: `browserTests((open) => { it(…) })`. Without a browser they are one skipped test that says so; with CI or
 * REQUIRE_CHROMIUM set they fail.
 */
export function browserTests(declare: (tools: BrowserTools) => void): void {
  const executablePath = PLACES.find(existsSync);
  if (executablePath === undefined) {
    const why = "No Chromium is installed, and the tests of the pages are skipped (Debian: apt-get install chromium)";
    if (process.env.CI || process.env.REQUIRE_CHROMIUM) throw new Error(why);
    it.skip(why, () => {});
    return;
  }
  let browser: Promise<Browser> | undefined;
  afterAll(async () => (await browser)?.close());
  declare({
    async open(gateway, { path = "/console", token = TOKENS.console, ...options } = {}) {
      browser ??= chromium.launch({ executablePath, args: FLAGS });
      const context = await (await browser).newContext({
        viewport: { width: 1280, height: 800 },
        reducedMotion: "reduce",
        ...options,
      });
      const page = await context.newPage();
      const complaints = complaintsOf(page, new URL(gateway.url).host);
      page.setDefaultTimeout(20_000);
      const code = token === "" ? "" : `#code=${await codeFor(gateway.url, token)}`;
      await page.goto(`${gateway.url}${path}${code}`);
      // A page that is left before its code was exchanged is not signed in. The page's content security policy forbids waitForFunction, which
      // evaluates its text in the page.
      const isSignedIn = async () => {
        // A link of a REST key asks first.
        const question = page.getByRole("button", { name: /^Sign in as / });
        if (await question.isVisible()) await question.click();
        return page.evaluate('sessionStorage.getItem("agent-gateway.token") !== null');
      };
      if (code !== "") await expect.poll(isSignedIn, { interval: 20 }).toBe(true);
      const close = async () => {
        await context.close();
        expect(complaints, "the browser complained").toEqual([]);
      };
      return Object.assign(page, { [Symbol.asyncDispose]: close });
    },
  });
}

type PageOptions = BrowserContextOptions & {
  path?: string;
  /** Signs in with it by the link; an empty one does not sign in. */
  token?: string;
};
/** A page has a separate session of the browser, which ends with it; it fails if the browser reported errors meanwhile. */
type BrowserTools = { open(gateway: Pick<GatewayProcess, "url">, options?: PageOptions): Promise<Page> };

/** Errors of scripts, refused loads, and requests to other hosts. */
function complaintsOf(page: Page, own: string): string[] {
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    // The page shows a refused call; the browser reports each of them, too.
    if (message.type() === "error" && !/Failed to load resource|WebSocket connection/.test(message.text()))
      complaints.push(message.text());
  });
  page.on("request", (request) => {
    const { protocol, host } = new URL(request.url());
    if (protocol !== "data:" && protocol !== "blob:" && host !== own) complaints.push(request.url());
  });
  return complaints;
}

/** A gateway with known tokens, in a separate process. */
export function startPages(config: object = {}, options: ProcessOptions = {}): Promise<GatewayProcess> {
  return startProcess({ config: { ...CONFIG, ...config }, ...options });
}

/** Returns a function that starts the gateway at one port, in the folder `cwd` of an earlier start if it is given. */
export function restartablePages(config: object = {}): (cwd?: string) => Promise<GatewayProcess> {
  const port = String(20_000 + Math.floor(Math.random() * 10_000));
  return (cwd) => startPages(config, { args: ["--port", port], ...(cwd !== undefined && { cwd }) });
}

/** Waits until the page follows the gateway live. */
export function untilLive(page: Page): Promise<void> {
  return page.locator(".live-sign[data-state='live']").first().waitFor();
}

/** Holds every request to a matching address from the `nth` on, until the returned function is called. */
export async function holdRoute(page: Page, address: RegExp, nth = 1): Promise<() => void> {
  let release = () => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  let asked = 0;
  await page.route(address, async (route) => {
    if (++asked >= nth) await held;
    await route.continue();
  });
  return release;
}

/** Uses one connection for each call: on a busy machine, the gateway may close an idle connection at the moment of its reuse. */
const OWN_CONNECTION = { connection: "close" };

/** Calls the gateway as an external client does. */
export function callers({ url }: Pick<GatewayProcess, "url">) {
  const post =
    (token: string) =>
    async (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Record<string, unknown>> => {
      const answer = await fetch(url + path, {
        method: "POST",
        headers: {
          ...OWN_CONNECTION,
          authorization: `Bearer ${token}`,
          "content-type": "application/json",
          ...headers,
        },
        body: typeof body === "string" ? body : JSON.stringify(body),
      });
      return (await answer.json()) as Record<string, unknown>;
    };
  return {
    rest: post(TOKENS.chat),
    hook: post(TOKENS.webhook),
    stranger: post("a-token-that-nobody-has"),
    console: post(TOKENS.console),
    rpc: async (method: string, params: object) =>
      (await post(TOKENS.rpc)("/rpc", { jsonrpc: "2.0", id: 1, method, params })).result as Record<string, unknown>,
  };
}

/** A code that signs in with the token. */
export async function codeFor(url: string, token: string): Promise<string> {
  const headers = { ...OWN_CONNECTION, authorization: `Bearer ${token}` };
  const answer = await fetch(`${url}/api/v1/console/codes`, { method: "POST", headers });
  return ((await answer.json()) as { code: string }).code;
}
