import { resolve } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { startChatCompletions } from "#test/backends/stand-ins/openai.ts";
import { faultsOf } from "./axe.ts";
import { browserTests, callers, startPages } from "./browser.ts";

const HOSTILE = "<img src=x onerror=window.ran=1>\u202egnp.exe";
const SESSION = "/console/s/agent%3Amain%3Aconsole%3Aconsole";

browserTests(({ open }) => {
  describe("a conversation with an agent", () => {
    it("MUST start with the first message, survive a reload during a reply, and show the first exchange", async () => {
      await using gateway = await startPages({
        agents: { main: { backend: "echo", echo: { delayMs: 2_000, chunks: 8 } } },
      });
      await using page = await open(gateway, { path: SESSION });
      await page.getByText("No messages.").waitFor();
      const field = page.getByRole("textbox", { name: "Message to main" });
      const replies = page.locator(".message[data-role='assistant'] :is(.markdown, .plain-text)");
      await field.fill("one two three four five six seven eight");
      await page.keyboard.press("Enter");
      await expect.poll(() => replies.first().textContent()).toMatch(/^one two/);
      await page.reload();
      await expect.poll(() => replies.first().textContent()).toMatch(/^one two/);
      await expect.poll(() => replies.first().textContent()).toContain("seven eight");
      await page.locator(".turn-line").getByText(" out").waitFor();
      await field.fill("and now?");
      await page.keyboard.press("Enter");
      await expect
        .poll(() => replies.allTextContents())
        .toEqual([expect.stringContaining("eight"), expect.stringContaining("and now?")]);
      expect(await page.locator(".message").count()).toBe(4);
    });

    it("MUST stop the running turn with the button in place of Send, and with Escape twice", async () => {
      await using gateway = await startPages({
        agents: { main: { backend: "echo", echo: { delayMs: 100_000, chunks: 8 } } },
      });
      await using page = await open(gateway, { path: SESSION });
      const field = page.getByRole("textbox", { name: "Message to main" });
      const states = page.locator(".turn-line .state");
      const send = async (text: string) => {
        await field.fill(text);
        await page.keyboard.press("Enter");
        await page.getByRole("button", { name: "Stop" }).waitFor();
      };
      await send("one two three four five six seven eight");
      await page.getByRole("button", { name: "Stop" }).click();
      await expect.poll(() => states.allTextContents()).toEqual([expect.stringContaining("cancelled")]);
      await page.getByRole("button", { name: /^Send :/ }).waitFor();
      await send("again, one two three four five six");
      await field.press("Escape");
      await field.press("Escape");
      await expect.poll(() => states.allTextContents()).toEqual(Array(2).fill(expect.stringContaining("cancelled")));
      expect(page.url()).toContain(SESSION);
    });

    it("MUST send the message of a failed turn again after an explanation", async () => {
      await using gateway = await startPages({
        agents: { main: { backend: "echo", echo: { failTimes: 9, fail: "the upstream pool is exhausted" } } },
      });
      await using page = await open(gateway, { path: SESSION });
      await page.getByRole("textbox", { name: "Message to main" }).fill("Is anybody there?");
      await page.keyboard.press("Enter");
      await page.locator(".turn-line[data-tone='failed']").getByText("the upstream pool is exhausted").waitFor();
      await page.getByRole("button", { name: "Try again" }).click();
      const dialog = page.getByRole("dialog", { name: "Send this message again?" });
      expect(await dialog.textContent()).toContain("Starts a new turn for main with the same text in this session.");
      expect(await dialog.textContent()).toContain("Is anybody there?");
      await dialog.getByRole("button", { name: "Send again" }).click();
      await expect.poll(() => page.locator(".message[data-role='user']").count()).toBe(2);
      await expect.poll(() => page.locator(".turn-line[data-tone='failed']").count()).toBe(2);
    });

    it("MUST offer no retry of a webhook's message, which only its request marks as from outside", async () => {
      await using gateway = await startPages({
        agents: { main: { backend: "echo", echo: { failTimes: 9, fail: "no" } } },
      });
      await callers(gateway).hook("/hooks/agent", { message: "Deploy.", session: "webhook:a" });
      await using page = await open(gateway, { path: "/console/s/webhook%3Aa" });
      await page.locator(".turn-line[data-tone='failed']").waitFor();
      expect(await page.getByRole("button", { name: "Try again" }).count()).toBe(0);
    });
  });

  describe("a turn with tool calls", async () => {
    const model = await startChatCompletions();
    afterAll(() => model[Symbol.asyncDispose]());
    const agents = {
      main: {
        backend: "model",
        models: { fast: { provider: "local", model: "the-model", price: { input: 1, output: 2 } } },
        tools: ["files/*"],
      },
    };
    const config = {
      agents,
      providers: { local: { type: "openai-compatible", baseUrl: `${model.url}/v1`, apiKey: "key-of-the-model-1234" } },
      tools: { files: { type: "stdio", run: [process.execPath, resolve("test/tools/stand-in.mjs")] } },
    };
    /** A gateway with a turn that called a tool that answered, and a tool that failed. */
    async function startCalled() {
      model.say(
        { calls: [{ name: "files__say", args: JSON.stringify({ text: HOSTILE, password: "hunter2" }) }] },
        { calls: [{ name: "files__fail", args: '{"order":4711}' }] },
        { text: ["Done."] },
      );
      const gateway = await startPages(config);
      const sent = await callers(gateway).rest("/api/v1/chat/send", { message: "Refund it.", user_id: "ada" });
      return { gateway, turnId: String(sent.turn_id), [Symbol.asyncDispose]: () => gateway[Symbol.asyncDispose]() };
    }

    it("MUST open each call to its arguments and its result, and show model, tokens and cost of the reply", async () => {
      await using called = await startCalled();
      await using page = await open(called.gateway, { path: "/console/s/agent%3Amain%3Arest%3Aada" });
      await page.getByText("2 tool calls, 1 failed").click();
      await page.getByText("files__say").click();
      const [args, result] = await page.locator(".tool-content pre").filter({ visible: true }).allTextContents();
      expect(args).toContain('"password": "[hidden]"');
      expect(args).toContain("⟨U+202E⟩gnp.exe");
      expect(result).toContain("You said <img src=x");
      await page.getByText("files__fail").click();
      const error = page.locator(".tool-content [data-tone='failed'] pre").filter({ visible: true });
      expect(await error.textContent()).toContain("There is no such customer.");
      const line = page.locator(".message[data-role='assistant'] .turn-line");
      expect(await line.textContent()).toMatch(/^fast · \d+ in.* out.* · cost [\d.]+ · /);
      expect(await page.evaluate("window.ran")).toBeUndefined();
      expect(await faultsOf(page, "light")).toEqual([]);
    });

    it.each([1280, 360])("MUST show the turn as bars on one axis, which open by the keyboard: %d px", async (width) => {
      await using called = await startCalled();
      await using page = await open(called.gateway, {
        path: `/console/t/${called.turnId}`,
        viewport: { width, height: 800 },
      });
      const rows = page.locator(".waterfall tbody tr");
      await expect
        .poll(() => rows.locator("th").allTextContents())
        .toEqual(["run", "model call", "files__say", "model call", "files__fail failed", "model call"]);
      await page.getByRole("button", { name: "files__fail" }).focus();
      await page.keyboard.press("Enter");
      await page.locator(".waterfall .tool-content").getByText("There is no such customer.").waitFor();
      const boxes = await Promise.all((await rows.locator(".bar > div").all()).map((bar) => bar.boundingBox()));
      const [whole, ...parts] = boxes.map((box) => [box?.x ?? 0, (box?.x ?? 0) + (box?.width ?? 0)] as const);
      for (const [from, to] of parts) {
        expect(from).toBeGreaterThanOrEqual((whole?.[0] ?? 0) - 1);
        expect(to).toBeLessThanOrEqual((whole?.[1] ?? 0) + 3);
      }
      expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
      expect(await faultsOf(page, "light")).toEqual([]);
      await page.getByRole("list", { name: "Messages" }).getByText("Done.").waitFor();
      expect(await page.locator("tr[aria-selected='true']").count()).toBe(1);
    });

    it("MUST show the messages of a running turn while they are written", async () => {
      await using gateway = await startPages({
        agents: { main: { backend: "echo", echo: { delayMs: 3_000, chunks: 8 } } },
      });
      const { rpc } = callers(gateway);
      const sent = await rpc("agent.sendMessage", {
        agentName: "main",
        message: "one two three four five six seven eight",
      });
      await using page = await open(gateway, { path: `/console/t/${sent.turnId}` });
      const reply = page.locator(".message[data-role='assistant'] :is(.markdown, .plain-text)");
      await expect.poll(() => reply.textContent()).toMatch(/^one two/);
      await expect.poll(() => page.locator(".inspector-head .state").textContent()).toContain("completed");
      expect(await reply.textContent()).toContain("seven eight");
    });
  });
});
