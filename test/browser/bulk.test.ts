import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { faultsOf } from "./axe.ts";
import { browserTests, callers, holdRoute, startPages } from "./browser.ts";

const SECRET = `whsec_${Buffer.from("the secret of a channel").toString("base64")}`;

/** A receiver of replies that answers as the test specifies. */
async function startChannel() {
  const state = { status: 410, received: 0 };
  const server = createServer((req, res) => {
    req.resume().on("end", () => {
      state.received++;
      res.writeHead(state.status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return Object.assign(state, {
    channels: { dead: { type: "webhook", url, secret: SECRET } },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  });
}

/** Sends webhooks, one after another. Returns the ids of their deliveries. */
async function sendAll(gateway: { url: string }, messages: readonly string[], more = {}): Promise<string[]> {
  const ids: string[] = [];
  for (const message of messages) {
    const { deliveryId } = await callers(gateway).hook("/hooks/agent", { message, ...more });
    ids.push(String(deliveryId));
  }
  return ids;
}
function problem(name: string, status: number, headers = {}) {
  const title = name.charAt(0).toUpperCase() + name.slice(1).replaceAll("-", " ");
  const body = JSON.stringify({ type: `/docs/errors.html#${name}`, title, status, request_id: "req_1" });
  return { status, body, headers: { "content-type": "application/problem+json", ...headers } };
}
async function replayAll(page: Page, count: number) {
  await expect.poll(() => page.locator("a.row-link").count()).toBe(count);
  await page.getByRole("button", { name: "Replay all" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: `Replay ${count} requests` }).click();
  return dialog;
}

browserTests(({ open }) => {
  describe("a reply that was not delivered", () => {
    it("MUST be marked in its row, found by the filter, and sent again by key", async () => {
      await using channel = await startChannel();
      await using gateway = await startPages({ channels: channel.channels });
      const { hook, rest } = callers(gateway);
      await rest("/api/v1/chat/send", { message: "Hello" });
      await hook("/hooks/agent", { message: "Tell ops", delivery: "announce", channel: "dead" });
      await using page = await open(gateway, { path: "/console/activity" });
      await page.getByText("✕ not delivered").waitFor();
      await page.getByLabel("Reply").selectOption("not delivered");
      await page.waitForURL(/\?announcement=failed$/);
      const rows = page.locator("a.row-link");
      await expect.poll(() => rows.allInnerTexts()).toEqual([expect.stringContaining("Tell ops")]);
      await page.goto(`${gateway.url}/console/activity?announcement=failed&channel=dead`);
      await rows.first().click();
      await page
        .getByRole("article")
        .getByText(/to dead: .*410/)
        .first()
        .waitFor();
      channel.status = 200;
      await page.keyboard.press("s");
      await page.getByRole("dialog").getByText("receives the reply again").waitFor();
      expect(await faultsOf(page, "light")).toEqual([]);
      await page.keyboard.press("Enter");
      await page.getByRole("article").getByText("● reply delivered").waitFor();
      expect(channel.received).toBe(2);
    });
  });

  describe("replaying all of a list", () => {
    it("MUST count first, name the effects and the omitted requests, and show the progress", async () => {
      await using gateway = await startPages();
      const { hook, rest } = callers(gateway);
      for (const message of ["one", "two", "three"]) await hook("/hooks/agent", { message });
      await rest("/api/v1/chat/send", { message: "Hello" });
      await using page = await open(gateway, { path: "/console/activity" });
      await page.locator("a.row-link").first().waitFor();
      expect(await page.getByRole("button", { name: "Replay all" }).count()).toBe(0);
      await page.getByLabel("Outcome").selectOption("completed");
      await page.getByRole("button", { name: "Replay all" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("3 turns for the agent main").waitFor();
      await dialog.getByText("1 skipped: only webhooks can be replayed").waitFor();
      expect(await faultsOf(page, "light")).toEqual([]);
      await dialog.getByRole("button", { name: "Replay 3 requests" }).press("Enter");
      await dialog.getByText("Finished. 3 of 3 replayed, 1 skipped").waitFor();
      await dialog.getByRole("button", { name: "Close" }).click();
      await expect.poll(() => page.locator("a.row-link").count()).toBe(7);
      await expect.poll(() => page.getByText("↻ replay").count()).toBe(3);
      // A second time would start everything twice.
      await page.getByRole("button", { name: "Replay all" }).click();
      await dialog.getByText("No request here can be replayed.").waitFor();
      await dialog.getByText("3 skipped: already replayed").waitFor();
      await dialog.getByText("3 skipped: replays of other requests").waitFor();
      expect(await dialog.getByRole("button").allTextContents()).toEqual(["Cancel"]);
    });

    it("MUST find replays that the filters exclude, and offer failed replays", async () => {
      await using channel = await startChannel();
      const flaky = { backend: "http", http: { url: channel.channels.dead.url } };
      await using gateway = await startPages({ agents: { main: { backend: "echo" }, flaky } });
      const ids = await sendAll(gateway, ["one", "two"], { agent: "flaky" });
      await using page = await open(gateway, { path: "/console/activity?outcome=failed" });
      await expect.poll(() => page.locator("a.row-link").count()).toBe(2);
      const { console: call } = callers(gateway);
      await call(`/api/v1/deliveries/${ids[0]}/replay`, { body: { message: "one", agent: "main" } });
      await call(`/api/v1/deliveries/${ids[1]}/replay`, {});
      await expect.poll(() => page.locator("a.row-link").count()).toBe(3);
      await page.getByRole("button", { name: "Replay all" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("1 turn for the agent flaky").waitFor();
      await dialog.getByText("2 skipped: already replayed").waitFor();
      await dialog.getByRole("button", { name: "Replay 1 request" }).waitFor();
    });

    it("MUST replay the oldest request first, and wait for the `Retry-After` of a busy gateway", async () => {
      await using gateway = await startPages();
      const [first, second, third] = await sendAll(gateway, ["one", "two", "three"]);
      await using page = await open(gateway, { path: "/console/activity?surface=hooks" });
      const asked: string[] = [];
      await page.route("**/replay", async (route) => {
        asked.push(route.request().url().split("/").at(-2) ?? "");
        if (asked.length === 2) return route.fulfill(problem("rate-limited", 429, { "retry-after": "2" }));
        await route.continue();
      });
      const dialog = await replayAll(page, 3);
      await dialog.getByText("Rate limited: next attempt in").waitFor();
      expect(await faultsOf(page, "light")).toEqual([]);
      await dialog.getByText("Finished. 3 of 3 replayed").waitFor();
      expect(asked).toEqual([first, second, second, third]);
    });

    it("MUST stop if the gateway refuses new work, and continue with the rest", async () => {
      await using gateway = await startPages();
      const [, lost] = await sendAll(gateway, ["one", "two", "three"]);
      await using page = await open(gateway, { path: "/console/activity?surface=hooks" });
      let asked = 0;
      await page.route("**/replay", async (route) => {
        asked++;
        if (asked === 2) return route.fulfill(problem("store-full", 503));
        // It starts, and its answer is lost.
        if (asked === 3) await route.fetch();
        return asked === 3 ? route.abort("connectionreset") : route.continue();
      });
      const dialog = await replayAll(page, 3);
      await dialog.getByText("Interrupted. 1 of 3 replayed", { exact: true }).waitFor();
      await dialog.getByRole("button", { name: "Replay 2 more requests" }).click();
      await dialog.getByText("Interrupted. 1 of 3 replayed, 1 unknown", { exact: true }).waitFor();
      await dialog.getByText("The gateway cannot be reached").waitFor();
      expect(await dialog.getByRole("link").getAttribute("href")).toBe(`/console/d/${lost}`);
      expect(await faultsOf(page, "light")).toEqual([]);
      await dialog.getByRole("button", { name: "Replay 1 more request" }).click();
      await dialog.getByText("Finished. 2 of 3 replayed, 1 unknown", { exact: true }).waitFor();
      expect(asked).toBe(4);
    });

    it("MUST stop on request, and start nothing more", async () => {
      await using gateway = await startPages();
      await sendAll(gateway, ["one", "two", "three"]);
      await using page = await open(gateway, { path: "/console/activity?surface=hooks" });
      let asked = 0;
      page.on("request", (request) => {
        if (request.url().endsWith("/replay")) asked++;
      });
      const release = await holdRoute(page, /\/replay$/, 2);
      const dialog = await replayAll(page, 3);
      await dialog.getByText("1 of 3 replayed").waitFor();
      // It cannot be closed while it works.
      await page.keyboard.press("Escape");
      await dialog.getByRole("button", { name: "Stop" }).click();
      release();
      await dialog.getByText("Stopped. 2 of 3 replayed").waitFor();
      expect(asked).toBe(2);
    });
  });

  describe("dead events", () => {
    it("MUST be filtered by their agent, and queued again all at once", async () => {
      // An agent that refuses each message.
      await using channel = await startChannel();
      const broken = { backend: "http", http: { url: channel.channels.dead.url } };
      await using gateway = await startPages({ agents: { main: broken, other: broken } });
      const { hook, console: call } = callers(gateway);
      for (const agent of ["main", "main", "other"]) await hook("/hooks/wake", { text: `For ${agent}`, agent });
      await using page = await open(gateway, { path: "/console/events?status=dead" });
      const rows = page.locator("a.row-link");
      const beatAll = async () => {
        for (const agent of ["main", "other"]) await call(`/api/v1/agents/${agent}/beat`, {});
        return rows.count();
      };
      await expect.poll(beatAll, { interval: 200 }).toBe(3);
      await page.getByLabel("Agent").fill("main");
      await page.waitForURL(/agent=main/);
      await expect.poll(() => rows.count()).toBe(2);
      await page.getByRole("button", { name: "Queue all again" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("2 events for the agent main").waitFor();
      expect(await faultsOf(page, "light")).toEqual([]);
      await dialog.getByRole("button", { name: "Queue 2 events" }).click();
      await dialog.getByText("Finished. 2 of 2 queued").waitFor();
      await dialog.getByRole("button", { name: "Close" }).click();
      await expect.poll(() => rows.count()).toBe(0);
    });
  });
});
