import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { agentProgram } from "#test/backends/stand-ins/acp.ts";
import { browserTests, callers, restartablePages, startPages, TOKENS, untilLive } from "./browser.ts";

function outcomes(page: Page): Promise<string[]> {
  return page.locator(".work > .state:first-child").allTextContents();
}

browserTests(({ open }) => {
  describe("a live list", () => {
    it("MUST show a request when it arrives, and change its state in place", async () => {
      await using gateway = await startPages({
        agents: { main: { backend: "echo", echo: { delayMs: 1_500 } } },
      });
      await using page = await open(gateway, { path: "/console/activity" });
      await untilLive(page);
      await page.getByText("No requests yet.").waitFor();
      const sent = callers(gateway).rest("/api/v1/chat/send", { message: "Hello" });
      await page.locator("tbody a.row-link").first().waitFor();
      await sent;
      await expect.poll(() => outcomes(page)).toEqual([expect.stringContaining("completed")]);
    });

    it("MUST move nothing under a reader, and show the new rows with the pill", async () => {
      await using gateway = await startPages();
      const { rest } = callers(gateway);
      await rest("/api/v1/chat/send", { message: "first" });
      await using page = await open(gateway, { path: "/console/activity" });
      await untilLive(page);
      await page.locator("tbody a.row-link").first().click();
      await page.getByText("Reply completed in").waitFor();
      for (const message of ["second", "third"]) await rest("/api/v1/chat/send", { message });
      await page.getByRole("button", { name: "2 new" }).waitFor();
      await page.locator(".live-sign[data-state='paused']", { hasText: "Paused" }).first().waitFor();
      expect(await outcomes(page)).toHaveLength(1);
      await page.getByRole("button", { name: "2 new" }).click();
      await untilLive(page);
      await expect.poll(() => outcomes(page)).toHaveLength(3);
    });

    it("MUST miss and repeat nothing when the gateway stops and starts again", async () => {
      const start = restartablePages({ store: { type: "sqlite", path: "./gateway.db" } });
      const first = await start();
      await callers(first).rest("/api/v1/chat/send", { message: "before" });
      await using page = await open(first, { path: "/console/activity" });
      await untilLive(page);
      await expect.poll(() => outcomes(page)).toHaveLength(1);
      first.kill("SIGKILL");
      await first.exited;
      await page.locator(".live-sign[data-state='reconnecting']").first().waitFor();
      await page
        .getByText(/^Reconnecting in [1-5] s$/)
        .first()
        .waitFor();
      await using second = await start(first.folder);
      for (const message of ["while away", "again"]) await callers(second).rest("/api/v1/chat/send", { message });
      await untilLive(page);
      await callers(second).rest("/api/v1/chat/send", { message: "after" });
      await expect.poll(() => outcomes(page)).toHaveLength(4);
      const ids = await page
        .locator("tbody a.row-link")
        .evaluateAll((links) => links.map((link) => link.getAttribute("href")));
      expect(new Set(ids).size).toBe(4);
      await first[Symbol.asyncDispose]();
    });

    it("MUST say, also on a narrow screen, that the stream is lost, and that rows may be missing once it is back", async () => {
      const start = restartablePages();
      const first = await start();
      await using page = await open(first, { path: "/console/activity", viewport: { width: 360, height: 740 } });
      const sign = page.locator(".bottom .live-sign");
      await page.locator(".bottom .live-sign[data-state='live']").waitFor({ state: "attached" });
      expect(await sign.isVisible()).toBe(false);
      // Only a stream that has started can break.
      await callers(first).rest("/api/v1/chat/send", { message: "Hello" });
      await page.locator("tbody a.row-link").first().waitFor();
      first.kill("SIGKILL");
      await first.exited;
      await sign.getByText("Reconnecting").waitFor();
      await using second = await start(first.folder);
      await sign.getByText("Live · caught up after a gap").waitFor();
      // A page that is opened then has missed nothing.
      await page.getByRole("link", { name: "Agents" }).last().click();
      await page.getByRole("heading", { name: "Agents" }).waitFor();
      await expect.poll(() => sign.isVisible()).toBe(false);
      expect(second.url).toBe(first.url);
      await first[Symbol.asyncDispose]();
    });

    it("MUST open a page automatically that was requested while the gateway was down", async () => {
      const start = restartablePages();
      const first = await start();
      await using page = await open(first, { path: "/console/usage" });
      await page.locator(".empty").getByText("No usage in this period.").waitFor();
      first.kill("SIGKILL");
      await first.exited;
      await page.getByLabel("By").selectOption("Model");
      await page.getByText("It may be restarting. Retrying automatically.").waitFor();
      await using second = await start(first.folder);
      await page.locator(".empty").getByText("No usage in this period.").waitFor();
      second.kill("SIGKILL");
      await second.exited;
      // The script of this page is not loaded yet.
      await page.getByRole("link", { name: "Skills", exact: true }).click();
      await page.getByText("It may be restarting. Retrying automatically.").waitFor();
      await using third = await start(first.folder);
      await page.getByText("No skills yet.").waitFor();
      expect(third.url).toBe(first.url);
      await first[Symbol.asyncDispose]();
    });

    it("MUST be live even if the first connection is lost before it answers", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway);
      let connections = 0;
      let isSubscribed = false;
      await page.routeWebSocket(/\/rpc\/ws$/, (socket) => {
        const server = socket.connectToServer();
        const isFirst = ++connections === 1;
        socket.onMessage((message) => {
          if (isFirst) return void socket.close();
          isSubscribed ||= String(message).includes("rpc.subscribe");
          server.send(message);
        });
      });
      await page.goto(`${gateway.url}/console/activity`);
      await expect.poll(() => isSubscribed).toBe(true);
      await untilLive(page);
      await callers(gateway).rest("/api/v1/chat/send", { message: "Hello" });
      await page.locator("tbody a.row-link").first().waitFor();
    });

    it("MUST say on every page when the gateway accepts no new work, and stop saying so", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway);
      await untilLive(page);
      const parts = { store: { ok: false, detail: "The store does not answer." }, intake: { ok: true } };
      await page.route("**/readyz", (route) => route.fulfill({ status: 503, json: { ready: false, parts } }));
      const sign = page.locator(".side .live-sign[data-state='not-ready']");
      await sign.waitFor();
      expect(await sign.textContent()).toContain("Not ready");
      expect(await sign.getAttribute("title")).toContain("The store does not answer.");
      await page.unroute("**/readyz");
      await untilLive(page);
    });

    it("MUST say that the gateway drains while its last turns run", async () => {
      await using gateway = await startPages({ agents: { main: { backend: "echo", echo: { delayMs: 20_000 } } } });
      const viewport = { width: 360, height: 740 };
      await using page = await open(gateway, { viewport });
      await page.locator(".bottom .live-sign[data-state='live']").waitFor({ state: "attached" });
      // A draining gateway serves no pages.
      await page.getByRole("button", { name: "Tail" }).waitFor();
      await callers(gateway).rpc("agent.sendMessage", { agentName: "main", message: "Hello", channel: "test" });
      gateway.kill("SIGTERM");
      const sign = page.locator(".bottom .live-sign[data-state='not-ready']");
      await sign.waitFor();
      expect(await sign.textContent()).toContain("Draining");
      await page.locator(".troubles").getByText("New connections are refused.").waitFor();
      gateway.kill("SIGKILL");
    });

    it("MUST serve two tabs, each with its own subscriptions", async () => {
      await using gateway = await startPages();
      await using one = await open(gateway, { path: "/console/activity" });
      await using other = await open(gateway, { path: "/console/activity?surface=hooks" });
      await untilLive(one);
      await untilLive(other);
      await callers(gateway).rest("/api/v1/chat/send", { message: "by REST" });
      await callers(gateway).hook("/hooks/wake", { text: "by a webhook" });
      await expect.poll(() => outcomes(one)).toHaveLength(2);
      await expect.poll(() => outcomes(other)).toHaveLength(1);
    });
  });

  describe("a conversation", () => {
    const agents = { main: { backend: "echo", echo: { delayMs: 1_200, chunks: 6 } } };

    it("MUST stream a reply, show Markdown, and continue after a reload", async () => {
      await using gateway = await startPages({ agents });
      const { rest } = callers(gateway);
      const { session_id } = await rest("/api/v1/chat/send", { message: "**Hello** from outside", user_id: "ada" });
      await using page = await open(gateway, { path: `/console/s/${encodeURIComponent(String(session_id))}` });
      const messages = page.getByRole("list", { name: "Messages" }).getByRole("listitem");
      await expect.poll(() => messages.count()).toBe(2);
      await page.locator(".markdown strong").first().waitFor();
      await page.getByRole("textbox", { name: "Message" }).fill("And now?");
      await page.keyboard.press("Enter");
      await expect.poll(() => messages.count()).toBe(4);
      await expect.poll(() => messages.nth(3).textContent()).toContain("And now?");
      await page.reload();
      await expect.poll(() => messages.count()).toBe(4);
    });

    it("MUST fold tool calls, and show the result of each", async () => {
      await using gateway = await startPages({ agents: { main: { backend: "acp", acp: { run: agentProgram() } } } });
      const { session_id } = await callers(gateway).rest("/api/v1/chat/send", { message: "do: tool", user_id: "ada" });
      await using page = await open(gateway, { path: `/console/s/${encodeURIComponent(String(session_id))}` });
      const calls = page.locator(".tool-calls");
      const summary = calls.locator("summary").first();
      expect(await summary.textContent()).toBe("1 tool call, 1 failed");
      expect(await calls.getByText("Read /etc/motd").isVisible()).toBe(false);
      await summary.click();
      await calls.getByText("Read /etc/motd").waitFor();
      await expect.poll(() => calls.textContent()).toContain("failed");
    });

    it("MUST show hostile text as text, also in Markdown", async () => {
      await using gateway = await startPages();
      const message =
        'a <img src=x onerror="window.ran=1"> <script>window.ran=1</script> [link](javascript:window.ran=1) <a href="data:text/html,x">d</a> **bold** \u202e';
      const { session_id } = await callers(gateway).rest("/api/v1/chat/send", { message, user_id: "eve" });
      await using page = await open(gateway, { path: `/console/s/${encodeURIComponent(String(session_id))}` });
      await page.locator(".markdown strong").first().waitFor();
      expect(await page.evaluate("window.ran")).toBeUndefined();
      expect(await page.locator(".chat img, .chat script").count()).toBe(0);
      const targets = await page
        .locator(".chat .markdown a")
        .evaluateAll((links) => links.map((link) => link.getAttribute("href")));
      expect(targets.filter((target) => target !== null)).toEqual([]);
    });

    it("MUST compact with a before and after, and delete after a confirmation", async () => {
      await using gateway = await startPages();
      const { rest } = callers(gateway);
      for (let n = 0; n < 4; n++) await rest("/api/v1/chat/send", { message: `message ${n}`, user_id: "ada" });
      await using page = await open(gateway, { path: "/console/sessions" });
      await page.getByRole("link", { name: /agent:main:rest:ada/ }).click();
      await page.getByRole("button", { name: "Compact" }).click();
      await page.getByLabel("Newest messages to keep").selectOption("2");
      await page.getByRole("dialog").getByRole("button", { name: "Compact" }).click();
      await page.getByText("Compacted.").waitFor();
      await page
        .getByText(/^8 messages/)
        .first()
        .waitFor();
      await page.getByRole("button", { name: "Close" }).click();
      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByText("This cannot be undone.").waitFor();
      await page.getByRole("button", { name: "Delete the session" }).click();
      await page.getByText("No sessions yet.").waitFor();
      await page.goto(`${gateway.url}/console/s/agent%3Amain%3Arest%3Aada`);
      await page.getByText("This session is not stored.").waitFor();
    });
  });

  describe("keys", () => {
    it("MUST be created on the settings page, work at once, and stop when revoked", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/settings" });
      await page.getByRole("button", { name: "Create a key" }).click();
      await page.getByLabel("Name").fill("support desk");
      await page.getByRole("button", { name: "Create", exact: true }).click();
      await page.getByText("Copy the key now.").waitFor();
      const key = String(await page.locator("output").textContent()).trim();
      expect(key).toMatch(/^gw_[\w-]{43}$/);
      await page.getByRole("button", { name: "I have copied the key" }).click();
      expect(await page.locator("body").textContent()).not.toContain(key);
      const send = () =>
        fetch(`${gateway.url}/api/v1/chat/send`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          body: '{"message":"Hello"}',
        });
      expect((await send()).status).toBe(200);
      // The question names this use, although the list was read before it.
      const row = page.getByRole("row", { name: /support desk/ });
      await row.getByRole("button", { name: "Revoke" }).click();
      await page.getByText(/Last used /).waitFor();
      await page.getByRole("button", { name: "Revoke the key" }).click();
      await row.waitFor({ state: "detached" });
      expect((await send()).status).toBe(401);
    });

    it("MUST be off, with the reason, for a REST key", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/settings", token: TOKENS.admin });
      await page.getByRole("button", { name: "Create a key" }).waitFor();
      expect(await page.getByRole("button", { name: "Create a key" }).getAttribute("aria-disabled")).toBe("true");
      await page.getByText("Only the console token can create and revoke keys.").last().waitFor();
    });
  });
});
