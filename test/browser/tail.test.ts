import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { faultsOf } from "./axe.ts";
import { browserTests, callers, startPages, untilLive } from "./browser.ts";
import { fill, untilIdle } from "./many.ts";

const SLOW = { main: { backend: "echo", echo: { delayMs: 700, chunks: 40 } } };
const TAIL = "/console?view=tail";

function lines(page: Page) {
  return page.getByRole("log").getByRole("listitem");
}
/** The distance of the log's scroll position from its end. */
function fromEnd(page: Page): Promise<number> {
  return page
    .getByRole("log")
    .evaluate(({ scrollHeight, scrollTop, clientHeight }) => scrollHeight - scrollTop - clientHeight);
}

browserTests(({ open }) => {
  describe("the page Live", () => {
    it("MUST have one row for each unit of work, and one for a heartbeat", async () => {
      await using gateway = await startPages();
      const { rest, hook } = callers(gateway);
      await rest("/api/v1/chat/send", { message: "before the page" });
      await using page = await open(gateway);
      await untilLive(page);
      const rows = page.locator("tbody tr");
      await expect.poll(() => rows.count()).toBe(1);
      await hook("/hooks/agent", { message: "while the page is open" });
      await hook("/hooks/wake", { text: "An event", mode: "now" });
      await expect.poll(() => rows.count()).toBe(4);
      const said = await page.locator(".work > .cut").allTextContents();
      expect(new Set(said)).toEqual(
        new Set(["Heartbeat · 1 system event", "An event", "while the page is open", "before the page"]),
      );
      await page.getByRole("link", { name: /Heartbeat/ }).click();
      await expect.poll(() => page.url()).toMatch(/\/console\/t\/turn_/);
    });

    it("MUST make fewer than 20 requests a minute at one webhook per second, and load less than 120 kB when opened", async () => {
      await using gateway = await startPages();
      const { hook, rest } = callers(gateway);
      const sendAll = async (count: number) => {
        for (let n = 0; n < count; n++)
          await rest("/api/v1/chat/send", { message: `message ${n}: ${"x".repeat(200)}` });
      };
      await sendAll(120);
      await using page = await open(gateway, { path: "/console/settings" });
      // Requests of that page are not counted.
      await page.waitForLoadState("networkidle");
      const devtools = await page.context().newCDPSession(page);
      await devtools.send("Network.enable");
      await devtools.send("Network.setCacheDisabled", { cacheDisabled: true });
      let bytes = 0;
      devtools.on("Network.loadingFinished", ({ encodedDataLength }) => {
        bytes += encodedDataLength;
      });
      const asked: string[] = [];
      page.on("request", (request) => {
        const { pathname } = new URL(request.url());
        if (!pathname.startsWith("/console")) asked.push(pathname);
      });
      await page.clock.install();
      await page.goto(`${gateway.url}/console`);
      await untilLive(page);
      await expect.poll(() => page.locator("tbody tr").count()).toBe(40);
      await page.getByText("Turns per minute").waitFor();
      expect(bytes).toBeLessThan(120_000);
      const opened = asked.length;
      // The minute is measured by the page's clock, which stops while the machine is slow.
      await page.clock.pauseAt((await page.evaluate(() => Date.now())) + 1_000);
      for (let n = 0; n < 60; n++) {
        await hook("/hooks/agent", { message: `push ${n}` });
        await page.clock.runFor(1_000);
      }
      const requests = [...asked];
      await page.clock.resume();
      await page.getByText("push 59").first().waitFor();
      expect(requests.slice(opened).length, requests.join(" ")).toBeLessThan(10);
      expect(requests.length, requests.join(" ")).toBeLessThan(20);
    });

    it("MUST list each trouble once, and link to the failed work", async () => {
      const agents = {
        main: { backend: "echo" },
        flaky: { backend: "http", http: { url: "http://127.0.0.1:9/" } },
      };
      await using gateway = await startPages({ agents });
      const { rest } = callers(gateway);
      await using page = await open(gateway);
      await untilLive(page);
      await rest("/api/v1/chat/send", { message: "Hello", agent: "flaky" });
      const troubles = page.getByRole("list", { name: "Problems" }).getByRole("listitem");
      await troubles.getByText(/last turn failed/).waitFor();
      // A busy machine has other troubles, too.
      expect(await troubles.filter({ hasText: "flaky" }).count()).toBe(1);
      await expect.poll(() => page.title()).toMatch(/^✕ \d failing · Live · Agent Gateway$/);
      expect(await page.locator("link[rel=icon]").getAttribute("href")).toContain("B3261E");
      await troubles.getByRole("link", { name: "flaky" }).click();
      await expect.poll(() => page.url()).toMatch(/\/activity\?agent=flaky&outcome=failed$/);
    });
  });

  describe("the tail", () => {
    it("MUST show the reply of a running turn while it is written, then its first words", async () => {
      await using gateway = await startPages({ agents: SLOW });
      await using page = await open(gateway, { path: TAIL });
      await untilLive(page);
      const message = "One two three four five six seven eight nine ten eleven twelve.";
      const sent = callers(gateway).rest("/api/v1/chat/send", { message });
      const writing = page.locator(".tail-out.writing");
      await writing.waitFor();
      const early = String(await writing.textContent());
      await expect.poll(async () => String(await writing.textContent()).length).toBeGreaterThan(early.length);
      // A screen reader does not read the reply piece by piece.
      expect(await writing.locator("[aria-hidden='true']").count()).toBe(1);
      await sent;
      await expect
        .poll(() => lines(page).allTextContents())
        .toEqual([expect.stringMatching(/^\d\d:\d\d:\d\dmainOne two.*→One two.*twelve\.[\d.]+ m?s · \d+ tokens$/)]);
      await lines(page).getByRole("link").click();
      await expect.poll(() => page.url()).toMatch(/\/console\/d\/dlv_/);
    });

    it("MUST name requests by their operation or path if bodies are not stored", async () => {
      await using gateway = await startPages({ recorder: { bodies: false } });
      const { rest, hook } = callers(gateway);
      await rest("/api/v1/chat/send", { message: "private words" });
      await hook("/hooks/wake", { text: "private words" });
      await using page = await open(gateway, { path: TAIL });
      await untilLive(page);
      const [chat, wake] = ["chat.send", "/hooks/wake"];
      await expect
        .poll(() => lines(page).allTextContents())
        .toEqual([expect.stringContaining(`${chat}→completed`), expect.stringContaining(wake)]);
      await page.keyboard.press("v");
      const said = () => page.locator(".work > .cut").allTextContents();
      await expect.poll(said).toEqual(["/hooks/wake", "chat.send"]);
      await page.goto(`${gateway.url}/console/activity`);
      await expect.poll(said).toEqual(["/hooks/wake", "chat.send"]);
      await page
        .getByRole("link", { name: /chat\.send/ })
        .first()
        .click();
      await page.getByText("Reply completed").first().waitFor();
      expect(await page.getByText("private words").count()).toBe(0);
    });

    it("MUST follow the end, and move nothing under a reader who scrolled up or paused", async () => {
      await using gateway = await startPages();
      const { rest } = callers(gateway);
      for (let n = 0; n < 60; n++) await rest("/api/v1/chat/send", { message: `message ${n}` });
      await using page = await open(gateway, { path: TAIL });
      await untilLive(page);
      await expect.poll(() => lines(page).count()).toBe(40);
      await expect.poll(() => fromEnd(page)).toBeLessThan(2);
      await rest("/api/v1/chat/send", { message: "followed" });
      await lines(page).getByText("followed").first().waitFor();
      await expect.poll(() => fromEnd(page)).toBeLessThan(2);
      await page.getByRole("log").evaluate((log) => log.scrollTo(0, 0));
      await page.getByText("Paused").waitFor();
      const before = await lines(page).allTextContents();
      for (let n = 0; n < 3; n++) await rest("/api/v1/chat/send", { message: "unseen" });
      await page.getByText("Paused · 3 new").waitFor();
      expect(await lines(page).allTextContents()).toEqual(before);
      expect(await page.getByRole("log").evaluate(({ scrollTop }) => scrollTop)).toBe(0);
      await page.keyboard.press(".");
      await lines(page).getByText("unseen").last().waitFor();
      await expect.poll(() => fromEnd(page)).toBeLessThan(2);
      await page.keyboard.press("p");
      await page.getByText("Paused").waitFor();
      await rest("/api/v1/chat/send", { message: "paused" });
      await page.getByText("Paused · 1 new").waitFor();
      expect(await lines(page).getByText("paused", { exact: true }).count()).toBe(0);
      await page.keyboard.press("p");
      await lines(page).getByText("paused", { exact: true }).first().waitFor();
      expect(await lines(page).getByText("View in Activity").count()).toBe(0);
    });

    it("MUST show how many requests a reader who resumes does not see, and link to them", async () => {
      await using gateway = await startPages();
      const { rest } = callers(gateway);
      for (let n = 0; n < 10; n++) await rest("/api/v1/chat/send", { message: "before" });
      await using page = await open(gateway, { path: TAIL });
      await untilLive(page);
      await expect.poll(() => lines(page).count()).toBe(10);
      await page.keyboard.press("p");
      await page.getByText("Paused").waitFor();
      await fill(gateway, 100);
      for (let n = 0; n < 12; n++) await rest("/api/v1/chat/send", { message: "after" });
      await untilIdle(gateway);
      await page.getByText("Paused · 100+ new").waitFor();
      expect(await lines(page).count()).toBe(10);
      await page.keyboard.press("p");
      await lines(page).getByText("after").last().waitFor();
      await page.getByText("72 more · View in Activity").waitFor();
      expect(await lines(page).first().textContent()).toBe("72 more · View in Activity");
      expect(await lines(page).count()).toBe(41);
      await rest("/api/v1/chat/send", { message: "next" });
      await lines(page).getByText("next").last().waitFor();
      expect(await lines(page).first().textContent()).toBe("72 more · View in Activity");
      await page.getByRole("link", { name: "View in Activity" }).click();
      await expect.poll(() => page.url()).toBe(`${gateway.url}/console/activity`);
    });

    it("MUST be reached and read by the keyboard, and be in the address", async () => {
      await using gateway = await startPages();
      for (const message of ["one", "two"]) await callers(gateway).rest("/api/v1/chat/send", { message });
      await using page = await open(gateway);
      await expect.poll(() => page.locator("tbody tr").count()).toBe(2);
      await page.keyboard.press("v");
      await expect.poll(() => page.url()).toMatch(/\/console\?view=tail$/);
      await expect.poll(() => lines(page).count()).toBe(2);
      await page.keyboard.press("k");
      await page.keyboard.press("k");
      const focused = () => page.evaluate("document.activeElement.textContent");
      await expect.poll(focused).toContain("one");
      await page.keyboard.press("j");
      await expect.poll(focused).toContain("two");
      await page.keyboard.press("v");
      await expect.poll(() => page.url()).toMatch(/\/console$/);
      await page.reload();
      await page.locator("tbody tr").first().waitFor();
    });

    it.each(["light", "dark"] as const)("MUST have no serious axe violations: %s", async (colorScheme) => {
      await using gateway = await startPages({ agents: SLOW });
      const { rest, stranger } = callers(gateway);
      await stranger("/hooks/wake", { text: "let me in" });
      void rest("/api/v1/chat/send", { message: "One two three four five six seven eight." }).catch(() => {});
      await using page = await open(gateway, { path: TAIL, colorScheme });
      await page.locator(".tail-out.writing").waitFor();
      expect(await faultsOf(page, colorScheme)).toEqual([]);
      await page.keyboard.press("v");
      await page.getByText("Refused in the last hour").waitFor();
      expect(await faultsOf(page, colorScheme)).toEqual([]);
    });

    it("MUST show hostile text as text, also at 360 px, without scrolling sideways", async () => {
      await using gateway = await startPages();
      const message = `<img src=x onerror="window.ran=1"> \u202egnp.exe \u001b[31m ${"w".repeat(300)}`;
      await callers(gateway).rest("/api/v1/chat/send", { message });
      await using page = await open(gateway, { path: TAIL, viewport: { width: 360, height: 740 } });
      await expect.poll(() => lines(page).count()).toBe(1);
      const text = String(await lines(page).textContent());
      expect(text).toContain("<img src=x");
      expect(text).toContain("U+202E");
      expect(text).not.toContain("\u202e");
      expect(await page.evaluate("window.ran")).toBeUndefined();
      expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
      expect(await page.getByRole("log").evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
    });
  });
});
