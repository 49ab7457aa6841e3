import { describe, expect, it } from "vitest";
import { browserTests, callers, startPages, TOKENS } from "./browser.ts";

browserTests(({ open }) => {
  describe("the page of the agents", () => {
    it("MUST send a message, stream the reply in, and lead to its session", async () => {
      await using gateway = await startPages({
        agents: { main: { backend: "echo", echo: { delayMs: 1_000, chunks: 4 } } },
      });
      await using opened = await open(gateway, { path: "/console/agents/main" });
      const { page, complaints } = opened;
      await page.locator(".live-sign[data-state='live']").first().waitFor();
      await page.getByRole("textbox", { name: "Message to main" }).fill("One two three four five six");
      await page.keyboard.press("Enter");
      const turn = page.locator(".try-turn .state");
      await expect.poll(() => turn.textContent()).toContain("running");
      await expect.poll(() => turn.textContent()).toContain("completed");
      const messages = page.getByRole("list", { name: "Messages" }).getByRole("listitem");
      expect(await messages.count()).toBe(2);
      expect(await messages.nth(1).textContent()).toContain("One two three four five six");
      await page.getByRole("link", { name: "agent:main:console:console" }).click();
      await page.getByRole("article", { name: "Session agent:main:console:console" }).waitFor();
      expect(complaints).toEqual([]);
    });

    it("MUST show an agent that fails, and why, without a reload of the page", async () => {
      await using gateway = await startPages({
        agents: { main: { backend: "echo", echo: { failTimes: 9, fail: "the model is overloaded" } } },
      });
      await using opened = await open(gateway, { path: "/console/agents/main" });
      const { page } = opened;
      await page.locator(".live-sign[data-state='live']").first().waitFor();
      await callers(gateway).rest("/api/v1/chat/send", { message: "Will this work?" });
      await page.locator(".note.bad").getByText("Its backend failed in its last turn").waitFor();
      await page.getByRole("button", { name: "Reload" }).click();
      await page.getByText("Reloaded. Nothing is different.").waitFor();
    });

    it("MUST say why it needs the console token", async () => {
      await using gateway = await startPages();
      await using opened = await open(gateway, { path: "/console/agents", token: TOKENS.admin });
      await opened.page.getByText("A REST key opens REST alone.").waitFor();
    });
  });

  describe("a conversation that loses its connection", () => {
    it("MUST go on inside a reply without doubling or missing a piece", async () => {
      await using gateway = await startPages({
        agents: { main: { backend: "echo", echo: { delayMs: 600, chunks: 8 } } },
      });
      await using opened = await open(gateway, { path: "/console/agents/main" });
      const { page } = opened;
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
      await page.locator(".live-sign[data-state='live']").first().waitFor();
      await page.getByRole("textbox", { name: "Message to main" }).fill(text);
      await page.keyboard.press("Enter");
      const reply = page.locator(".message[data-role='assistant']").last().locator(".markdown, .plain-text");
      await expect.poll(() => reply.textContent()).toMatch(/^alpha/);
      cut();
      // In the middle, the page is loaded anew: it has to ask for what was written before.
      await expect.poll(() => reply.textContent()).toMatch(/gamma/);
      await page.reload();
      await expect.poll(() => reply.textContent()).toMatch(/^alpha beta gamma/);
      await expect.poll(async () => (await reply.textContent())?.trim()).toBe(text);
      expect(await page.locator(".message").count()).toBe(4);
    });
  });
});
