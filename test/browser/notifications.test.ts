import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import type { Notification } from "#generated/clients/typescript/src/rest-types.ts";
import { faultsOf } from "./axe.ts";
import { browserTests, callers, startPages, TOKENS, untilLive } from "./browser.ts";

const SECRET = `whsec_${Buffer.from("the secret of an endpoint").toString("base64")}`;
const TAB = "/console/webhooks?tab=notifications";
const ID = "ntf_01M7YN0XEMM1B7E5S8YF3GKP2N";
/** The pixels by which the page is too wide. */
const WIDER = "document.documentElement.scrollWidth - innerWidth";

/** A receiver of notifications that answers as the test specifies. */
async function startReceiver(status: number) {
  const state = { status, ids: [] as unknown[] };
  const server = createServer((req, res) => {
    req.resume().on("end", () => {
      state.ids.push(req.headers["webhook-id"]);
      res.writeHead(state.status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  return Object.assign(state, {
    notify: { ops: { url, secret: SECRET, events: ["turn.*"] } },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
    },
  });
}

function notification(n: number, more: Partial<Notification> = {}): Notification {
  const webhook_id = `${ID.slice(0, -3)}${String(n).padStart(3, "0")}`;
  const at = new Date(Date.now() - n * 60_000).toISOString();
  const endpoint = more.endpoint ?? "ops";
  return {
    notification_id: `${webhook_id}.${endpoint}`,
    webhook_id,
    endpoint,
    type: "turn.failed",
    agent: "main",
    turn_id: webhook_id.replace("ntf_", "turn_"),
    session_id: "webhook:alerts",
    state: "failed",
    attempts: 27,
    status: 503,
    reason: "HTTP 503; retried for one day",
    created_at: at,
    ended_at: at,
    next_attempt_at: null,
    ...more,
  };
}

/** Answers the page's reads of notifications with these. Returns the ids that were sent again. */
async function standIn(page: Page, all: readonly Notification[]): Promise<string[]> {
  const replayed: string[] = [];
  await page.route("**/api/v1/notifications**", async (route) => {
    const { pathname, searchParams } = new URL(route.request().url());
    const [, id] = /\/notifications\/([^/]+)\/replay$/.exec(pathname) ?? [];
    if (id !== undefined) {
      replayed.push(decodeURIComponent(id));
      return route.fulfill({ status: 202, json: { ...notification(0), notification_id: id, state: "waiting" } });
    }
    const wanted = (name: "endpoint" | "state", one: Notification) =>
      (searchParams.get(name) ?? one[name]) === one[name];
    const notifications = all.filter((one) => wanted("endpoint", one) && wanted("state", one));
    await route.fulfill({ json: { notifications, next_cursor: null } });
  });
  return replayed;
}

browserTests(({ open }) => {
  describe("the tab Notifications", () => {
    it("MUST show a notification as soon as its turn ends, lead to the turn, and send it again by key", async () => {
      await using receiver = await startReceiver(204);
      await using gateway = await startPages({ notify: receiver.notify });
      await using page = await open(gateway, { path: TAB });
      await untilLive(page);
      await page.getByText("No notifications yet.").waitFor();
      const { turn_id } = await callers(gateway).rest("/api/v1/chat/send", { message: "Hello" });
      const list = page.getByRole("table", { name: "Notifications, newest first" });
      await list.getByText("● delivered").waitFor();
      await list.getByRole("link", { name: /turn\.completed/ }).click();
      const details = page.getByRole("article");
      await details.getByText("HTTP 204").waitFor();
      expect(await faultsOf(page, "light")).toEqual([]);
      await page.keyboard.press("r");
      await page.getByRole("dialog").getByText("The number of attempts restarts at 0.").waitFor();
      await page.keyboard.press("Enter");
      await expect.poll(() => receiver.ids).toHaveLength(2);
      expect(new Set(receiver.ids)).toEqual(new Set([String(turn_id).replace("turn_", "ntf_")]));
      await details.getByText("● delivered").waitFor();
      // The address leads to the notification, in another tab too.
      await page.reload();
      await details.getByRole("link", { name: String(turn_id) }).click();
      await page.getByRole("heading", { name: "Sessions" }).waitFor();
      expect(page.url()).toContain(`/t/${turn_id}`);
      expect(await page.content()).not.toContain(SECRET);
      // A receiver knows the id of the event.
      await page.keyboard.press("/");
      await page.getByRole("combobox", { name: "Search" }).fill(String(receiver.ids[0]));
      await page.getByRole("option", { name: /Notification, turn\.completed, delivered/ }).click();
      await details.getByText("HTTP 204").waitFor();
    });

    it("MUST follow a notification that is retried until it is delivered, and show why it failed", async () => {
      await using receiver = await startReceiver(503);
      await using gateway = await startPages({ notify: receiver.notify });
      await using page = await open(gateway, { path: TAB });
      await untilLive(page);
      await callers(gateway).rest("/api/v1/chat/send", { message: "Hello" });
      await page.getByText("▲ retrying").waitFor();
      await page.getByText(/turn\.completed .*503.*, again (in|now)/).waitFor();
      const endpoints = page.getByRole("table", { name: "Endpoints of notifications" });
      await endpoints.getByText("✕ failing").waitFor();
      receiver.status = 204;
      await page.getByText("● delivered").waitFor();
      await endpoints.getByText("● ok").waitFor();
      expect(new Set(receiver.ids).size).toBe(1);
    });

    it("MUST name a stopped endpoint, also on Live, and state that a test event does not start it", async () => {
      await using receiver = await startReceiver(410);
      await using gateway = await startPages({ notify: receiver.notify });
      await callers(gateway).rest("/api/v1/chat/send", { message: "Hello" });
      await expect.poll(() => receiver.ids).toHaveLength(1);
      await using page = await open(gateway);
      await page.getByRole("link", { name: "Endpoint ops" }).click();
      await page.waitForURL(/tab=notifications&endpoint=ops$/);
      const endpoints = page.getByRole("table", { name: "Endpoints of notifications" });
      await endpoints.getByText("✕ stopped").waitFor();
      await endpoints.getByText(/410.*, 1 waiting/).waitFor();
      expect(await faultsOf(page, "light")).toEqual([]);
      const test = page.getByRole("button", { name: "Send test to ops" });
      await test.click();
      await page.getByRole("status").getByText("ops did not accept the test event.").waitFor();
      receiver.status = 204;
      await test.click();
      const result = page.getByRole("status").filter({ hasText: "ops accepted the test event. HTTP 204" });
      await result.getByText("The endpoint is still stopped").waitFor();
      await page.locator("a.row-link").click();
      const why = await page
        .getByRole("article")
        .getByRole("button", { name: /^Send now/ })
        .getAttribute("title");
      expect(why).toContain("is stopped");
      // The reload starts it again.
      await page.getByRole("article").getByRole("link", { name: "reloaded" }).click();
      await page.getByRole("button", { name: "Reload now" }).click();
      await page.getByText("No changes in the file.").waitFor();
      await page.goto(gateway.url + TAB);
      await endpoints.getByText("● ok").waitFor();
      await page.getByText("● delivered").waitFor();
    });

    it("MUST replay all failed notifications of an endpoint, and leave out those of a removed one", async () => {
      await using receiver = await startReceiver(204);
      await using gateway = await startPages({ notify: receiver.notify });
      await using page = await open(gateway);
      const [first, second] = [notification(2), notification(3)];
      const removed = notification(1, { endpoint: "old" });
      const replayed = await standIn(page, [
        notification(0, { state: "delivered", reason: null }),
        removed,
        first,
        second,
      ]);
      await page.goto(gateway.url + TAB);
      await expect.poll(() => page.locator("a.row-link").count()).toBe(4);
      await page.getByLabel("State").selectOption("failed");
      await page.waitForURL(/state=failed/);
      await expect.poll(() => page.locator("a.row-link").count()).toBe(3);
      await page.getByRole("button", { name: "Replay all failed" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("2 notifications for the endpoint ops").waitFor();
      await dialog.getByText("1 skipped: the endpoint was removed from the configuration").waitFor();
      expect(await faultsOf(page, "light")).toEqual([]);
      await dialog.getByRole("button", { name: "Replay 2 notifications" }).click();
      await dialog.getByText("Finished. 2 of 2 queued, 1 skipped").waitFor();
      // The oldest first.
      expect(replayed).toEqual([second, first].map(({ notification_id }) => notification_id));
      await dialog.getByRole("button", { name: "Close" }).click();
      await page
        .getByRole("link", { name: /turn\.failed/ })
        .first()
        .click();
      const replay = page.getByRole("article").getByRole("button", { name: /^Replay/ });
      expect(await replay.getAttribute("title")).toBe("The endpoint old was removed from the configuration.");
    });

    it("MUST show how to configure the first endpoint, and show it once it is configured", async () => {
      await using receiver = await startReceiver(204);
      await using gateway = await startPages();
      await using page = await open(gateway, { path: TAB });
      await untilLive(page);
      await page.getByText("No endpoints are configured.").waitFor();
      expect(await page.locator(".empty .command code").textContent()).toMatch(/^notify: \{\n {2}ops: \{/);
      const file = join(gateway.folder, "gateway.json5");
      const config = JSON.parse(readFileSync(file, "utf8")) as object;
      writeFileSync(file, JSON.stringify({ ...config, notify: receiver.notify }));
      await page.getByRole("table", { name: "Endpoints of notifications" }).getByText("turn.*").waitFor();
      expect(await page.content()).not.toContain(SECRET);
    });

    it("MUST work with an admin key, and give the reason for states that it cannot read", async () => {
      await using receiver = await startReceiver(204);
      await using gateway = await startPages({ notify: receiver.notify });
      await callers(gateway).rest("/api/v1/chat/send", { message: "Hello" });
      await using page = await open(gateway, { path: TAB, token: TOKENS.admin });
      await page.getByRole("table", { name: "Notifications, newest first" }).getByText("turn.completed").waitFor();
      expect(await page.getByText("not known").getAttribute("title")).toContain("Sign in with the console token.");
      await page.getByRole("button", { name: "Send test to ops" }).click();
      await page.getByText("ops accepted the test event.").waitFor();
    });

    it("MUST say that a notification is no longer stored", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: `/console/n/${ID}.ops` });
      await page.getByText("This notification is no longer stored.").waitFor();
      await page.keyboard.press("Escape");
      await page.waitForURL(/\/webhooks\?tab=notifications$/);
    });

    it.each(["light", "dark"] as const)(
      "MUST have no serious axe violations and fit 360 px: %s",
      async (colorScheme) => {
        await using receiver = await startReceiver(204);
        const notify = { ...receiver.notify, ["w".repeat(64)]: { ...receiver.notify.ops, agents: ["main"] } };
        await using gateway = await startPages({ notify });
        await using page = await open(gateway, { colorScheme });
        const all = [
          notification(0, { state: "waiting", ended_at: null, reason: null, status: null }),
          notification(1, {
            state: "retrying",
            ended_at: null,
            next_attempt_at: new Date(Date.now() + 60_000).toISOString(),
          }),
          notification(2, {
            state: "delivered",
            reason: null,
            endpoint: "w".repeat(64),
            type: "health.changed",
            agent: null,
          }),
          notification(3, { reason: `<img src=x onerror=alert(1)>${"x".repeat(500)}` }),
        ];
        await standIn(page, all);
        const found: string[] = [];
        for (const width of [1280, 820, 360]) {
          await page.setViewportSize({ width, height: 800 });
          for (const path of [TAB, `/console/n/${all[3]?.notification_id}`]) {
            await page.goto(gateway.url + path);
            await page.locator("article, a.row-link").getByText("turn.failed").last().waitFor();
            found.push(...(await faultsOf(page, colorScheme)).map((fault) => `${path}, ${width}: ${fault}`));
            if (Number(await page.evaluate(WIDER)) > 0) found.push(`${path}, ${width}: too wide`);
          }
        }
        expect(found).toEqual([]);
      },
    );
  });
});
