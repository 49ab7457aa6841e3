import { describe, expect, it } from "vitest";
import { browserTests, callers, startPages, TOKENS, untilLive } from "./browser.ts";

browserTests(({ open }) => {
  describe("the page of the agents", () => {
    it("MUST lead to a conversation with the agent, by a link and by a key", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/agents/main" });
      await page.getByRole("link", { name: "Send a message" }).click();
      await page.getByRole("article", { name: "Session agent:main:console:console" }).waitFor();
      await page.goBack();
      await page.getByRole("link", { name: "New session" }).waitFor();
      await page.keyboard.press("m");
      await page.getByRole("textbox", { name: "Message to main" }).waitFor();
    });

    it("MUST show a failing agent with the reason, without a reload of the page", async () => {
      await using gateway = await startPages({
        agents: { main: { backend: "echo", echo: { failTimes: 9, fail: "the model is overloaded" } } },
      });
      await using page = await open(gateway, { path: "/console/agents/main" });
      await untilLive(page);
      await callers(gateway).rest("/api/v1/chat/send", { message: "Will this work?" });
      await page.locator(".note[data-tone=failed]").getByText("the model is overloaded").waitFor();
      expect(await page.locator("td[data-name='Agent'], th[data-name='Agent']").first().textContent()).toContain(
        "the model is overloaded",
      );
      await page.getByRole("button", { name: "Reload" }).click();
      await page.getByText("Reloaded. No changes.").waitFor();
    });

    it("MUST pause an agent after an explanation, show the pause everywhere, and resume the agent", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/agents/main" });
      await untilLive(page);
      await page.getByRole("button", { name: "Pause" }).click();
      const dialog = page.getByRole("dialog", { name: "Pause the agent main?" });
      expect(await dialog.textContent()).toContain(
        "New messages and events wait until you resume the agent. Running turns continue.",
      );
      await dialog.getByRole("button", { name: "Cancel" }).click();
      await page.getByRole("button", { name: "Pause" }).click();
      await dialog.getByRole("button", { name: "Pause" }).click();
      await page.getByRole("button", { name: "Resume" }).waitFor();
      const { hook, rest } = callers(gateway);
      await hook("/hooks/agent", { message: "Deploy." });
      await hook("/hooks/wake", { text: "The build is green." });
      const sent = rest("/api/v1/chat/send", { message: "Hello" });
      await page.getByText("2 queued, 1 event waiting.").waitFor();
      expect(await page.getByRole("link", { name: "2 queued" }).first().getAttribute("href")).toContain(
        "outcome=queued&agent=main",
      );
      const beat = page.getByRole("button", { name: "Run heartbeat now" });
      expect(await beat.getAttribute("aria-disabled")).toBe("true");
      const state = page.locator("td[data-name='State']");
      expect(await state.textContent()).toContain("paused");
      expect(await page.locator(".inspector-head .state").allTextContents()).toEqual([
        expect.stringContaining("paused"),
      ]);
      await page.getByRole("link", { name: "Live" }).first().click();
      const trouble = page.getByRole("list", { name: "Problems" }).getByRole("listitem");
      await trouble.getByText("paused, 2 turns and 1 event waiting").waitFor();
      expect(await page.locator(".agent-cards .state").textContent()).toContain("paused");
      await trouble.getByRole("link").click();
      await page.getByRole("button", { name: "Resume" }).click();
      await page.getByText("Resumed. Waiting turns start now.").waitFor();
      await page.getByRole("button", { name: "Pause" }).waitFor();
      expect(await sent).toMatchObject({ status: "completed" });
      await expect.poll(() => state.textContent()).toContain("idle");
    });

    it("MUST show that another user has paused and resumed an agent, without a reload of the page", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/agents" });
      await untilLive(page);
      const state = page.locator("td[data-name='State']");
      for (const [what, word] of [
        ["pause", "paused"],
        ["resume", "idle"],
      ] as const) {
        const headers = { authorization: `Bearer ${TOKENS.admin}` };
        await fetch(`${gateway.url}/api/v1/agents/main/${what}`, { method: "POST", headers });
        await expect.poll(() => state.textContent()).toContain(word);
      }
    });

    it("MUST say that it needs the console token, and why", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/agents", token: TOKENS.admin });
      await page.getByText("API keys can't use this.").waitFor();
    });
  });

  describe("a conversation that loses its connection", () => {
    it("MUST continue a reply without repeating or losing a piece", async () => {
      await using gateway = await startPages({
        agents: { main: { backend: "echo", echo: { delayMs: 600, chunks: 8 } } },
      });
      await using page = await open(gateway, { path: "/console/agents/main" });
      let cut = () => {};
      await page.routeWebSocket(/\/rpc\/ws$/, (socket) => {
        const server = socket.connectToServer();
        cut = () => {
          void server.close();
          void socket.close({ code: 4000 });
        };
      });
      await page.reload();
      const text = "alpha beta gamma delta epsilon zeta eta theta";
      const { session_id } = await callers(gateway).rest("/api/v1/chat/send", { message: "Hello", user_id: "ada" });
      await page.goto(`${gateway.url}/console/s/${encodeURIComponent(String(session_id))}`);
      await untilLive(page);
      await page.getByRole("textbox", { name: "Message to main" }).fill(text);
      await page.keyboard.press("Enter");
      const reply = page.locator(".message[data-role='assistant']").last().locator(".markdown, .plain-text");
      await expect.poll(() => reply.textContent()).toMatch(/^alpha/);
      cut();
      // In the middle, the page is reloaded: it must read the earlier part of the reply.
      await expect.poll(() => reply.textContent()).toMatch(/gamma/);
      await page.reload();
      await expect.poll(() => reply.textContent()).toMatch(/^alpha beta gamma/);
      await expect.poll(async () => (await reply.textContent())?.trim()).toBe(text);
      expect(await page.locator(".message").count()).toBe(4);
    });
  });
});
