import type { Page, Request } from "playwright-core";
import { describe, expect, it } from "vitest";
import { browserTests, callers, holdRoute, startPages, TOKENS, untilLive } from "./browser.ts";
import { fill, untilIdle } from "./many.ts";

function hrefs(page: Page): Promise<(string | null)[]> {
  return page.locator("a.row-link").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
}
function focused(page: Page): Promise<string | null> {
  return page.evaluate("document.activeElement.getAttribute('href')");
}
/** The addresses of all deliveries, in the gateway's order. */
async function listed({ url }: { url: string }): Promise<string[]> {
  const answer = await fetch(`${url}/api/v1/deliveries?limit=500`, {
    headers: { authorization: `Bearer ${TOKENS.console}` },
  });
  const { deliveries } = (await answer.json()) as { deliveries: { delivery_id: string }[] };
  return deliveries.map(({ delivery_id }) => `/console/d/${delivery_id}`);
}
/** Returns the row that was last before. */
async function goOlder(page: Page): Promise<string | null> {
  const last = (await hrefs(page)).at(-1) ?? null;
  await page.getByRole("button", { name: "Show older" }).scrollIntoViewIfNeeded();
  await expect.poll(async () => (await hrefs(page)).at(-1)).not.toBe(last);
  return last;
}
/** Holds the reads of older pages. `reach` begins one by scrolling to the end, `finish` lets it end. */
async function holdOlder(page: Page) {
  const release = await holdRoute(page, /deliveries\?.*before=/);
  return {
    async reach() {
      await page.getByRole("button", { name: "Show older" }).scrollIntoViewIfNeeded();
      await page.getByRole("button", { name: "Loading…" }).waitFor();
    },
    async finish() {
      const before = (await hrefs(page)).at(-1);
      release();
      await expect.poll(async () => (await hrefs(page)).at(-1)).not.toBe(before);
    },
  };
}
async function untilPainted(page: Page): Promise<void> {
  await page.evaluate("(async () => { for (let n = 0; n < 3; n++) await new Promise(requestAnimationFrame); })()");
}

browserTests(({ open }) => {
  /** A live page of a gateway with this number of requests, after its first rows are shown. `all` are the addresses of all requests. */
  async function openFilled(
    count: number,
    { path = "/console/activity", ...config }: { path?: string; agents?: object } = {},
  ) {
    const gateway = await startPages(config);
    await fill(gateway, count);
    await untilIdle(gateway);
    const page = await open(gateway, { path });
    await untilLive(page);
    await expect.poll(async () => (await hrefs(page)).length).toBe(100);
    const all = await listed(gateway);
    return {
      gateway,
      page,
      all,
      async [Symbol.asyncDispose]() {
        await page[Symbol.asyncDispose]();
        await gateway[Symbol.asyncDispose]();
      },
    };
  }

  describe("a list of more rows than are shown", () => {
    it("MUST move to older and newer rows by the keyboard, with the focus on the button", async () => {
      await using filled = await openFilled(250);
      const { page, all } = filled;
      expect(all).toHaveLength(250);
      // A key that is pressed before the rows are there has no effect.
      const isNearEnd = (n: number) => n % 50 <= 2 || n % 50 >= 48;
      for (const [n, href] of all.entries()) {
        await page.keyboard.press("j");
        if (isNearEnd(n)) await expect.poll(() => focused(page)).toBe(href);
      }
      expect(await page.getByRole("button", { name: "Show older" }).count()).toBe(0);
      expect(await hrefs(page)).toEqual(all.slice(50));
      for (let n = 248; n >= 0; n--) {
        await page.keyboard.press("k");
        if (isNearEnd(n)) await expect.poll(() => focused(page)).toBe(all[n]);
      }
      expect(await hrefs(page)).toEqual(all.slice(0, 200));
    });

    it("MUST show older rows to a reader who reached the end while the newest were read", async () => {
      await using filled = await openFilled(250);
      const { page, all } = filled;
      const finish = await holdRoute(page, /api\/v1\/deliveries\?(?!.*before=)/);
      await page.evaluate(`document.dispatchEvent(new Event("visibilitychange"))`);
      await page.getByRole("button", { name: "Loading…" }).waitFor();
      // The browser reports the button in sight before it paints the frame after the next.
      await page.evaluate(`(async () => {
        scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
        for (let n = 0; n < 3; n++) await new Promise(requestAnimationFrame);
      })()`);
      expect((await hrefs(page)).length).toBe(100);
      finish();
      await expect.poll(() => hrefs(page)).toEqual(all.slice(0, 200));
    });

    it("continues after an empty page that is not the last one", async () => {
      await using filled = await openFilled(150);
      const { page, all } = filled;
      let place = "";
      await page.route(/deliveries\?.*(before|cursor)=/, async (route) => {
        const url = new URL(route.request().url());
        const before = url.searchParams.get("before");
        if (before !== null) {
          place = before;
          return route.fulfill({ json: { deliveries: [], next_cursor: "c1" } });
        }
        url.searchParams.delete("cursor");
        url.searchParams.set("before", place);
        return route.continue({ url: url.href });
      });
      await goOlder(page);
      await expect.poll(() => hrefs(page)).toEqual(all);
    });

    it("MUST show the newest state of a row whose first push arrived while an older page was read", async () => {
      const agents = { main: { backend: "echo" }, slow: { backend: "echo", echo: { delayMs: 2_000 } } };
      await using filled = await openFilled(150, { agents });
      const { gateway, page } = filled;
      const { reach, finish } = await holdOlder(page);
      await reach();
      const sent = callers(gateway).rest("/api/v1/chat/send", { message: "Hello", agent: "slow" });
      await page.getByRole("button", { name: "1 new" }).waitFor();
      await finish();
      await sent;
      await page.getByRole("button", { name: "1 new" }).click();
      await page.getByRole("link", { name: "completed Hello" }).first().waitFor();
      const read = new Promise<void>((resolve) => {
        const ended = (request: Request) => /deliveries\?limit=100$/.test(request.url()) && resolve();
        page.on("requestfinished", ended);
        // Chromium reports some completely read answers as aborted.
        page.on("requestfailed", ended);
      });
      await page.evaluate(`document.dispatchEvent(new Event("visibilitychange"))`);
      await read;
      await untilPainted(page);
      expect(await page.locator("tbody tr").first().textContent()).toContain("completed");
    });

    it("MUST NOT move a row that ends late to the top if it is older than the loaded rows", async () => {
      const agents = { main: { backend: "echo" }, slow: { backend: "echo", echo: { delayMs: 20_000 } } };
      await using gateway = await startPages({ agents });
      const sent = callers(gateway).rest("/api/v1/chat/send", { message: "Hello", agent: "slow" });
      await fill(gateway, 150);
      await using page = await open(gateway, { path: "/console/activity" });
      await untilLive(page);
      await sent;
      await callers(gateway).rest("/api/v1/chat/send", { message: "The last one" });
      await page.getByRole("link", { name: "completed The last one" }).waitFor();
      const all = await listed(gateway);
      expect(await hrefs(page)).toEqual(all.slice(0, 101));
      await goOlder(page);
      await expect.poll(() => hrefs(page)).toEqual(all);
    });

    it("MUST read the first page of sessions once", async () => {
      await using gateway = await startPages();
      await fill(gateway, 50);
      await untilIdle(gateway);
      await using page = await open(gateway, { path: "/console/settings" });
      await untilLive(page);
      let asked = 0;
      page.on("request", (request) => {
        if (request.postData()?.includes("session.list")) asked++;
      });
      await page.goto(`${gateway.url}/console/sessions`);
      await untilLive(page);
      await expect.poll(async () => (await hrefs(page)).length).toBe(50);
      // Once a push arrives, the page has sent all its initial requests.
      await callers(gateway).rest("/api/v1/chat/send", { message: "Hello", user_id: "ada" });
      await page.getByRole("link", { name: /^Hello agent:main:rest:ada/ }).waitFor();
      expect(asked).toBe(1);
    });

    it("MUST not show a row of another filter that arrived while an older page was read", async () => {
      await using filled = await openFilled(150);
      const { gateway, page } = filled;
      const { reach } = await holdOlder(page);
      await reach();
      await callers(gateway).rest("/api/v1/chat/send", { message: "Hello" });
      await page.getByRole("button", { name: "1 new" }).waitFor();
      await page.getByRole("button", { name: "More filters" }).click();
      await page.getByLabel("Surface").selectOption("hooks");
      await page.getByText("No request matches these filters.").waitFor();
      await untilPainted(page);
      expect(await hrefs(page)).toEqual([]);
    });

    it("MUST hold new rows behind the pill while older ones are shown, and return to them", async () => {
      await using filled = await openFilled(450);
      const { gateway, page } = filled;
      for (let n = 0; n < 2; n++) await goOlder(page);
      await page.getByRole("button", { name: "Jump to live" }).waitFor();
      const shown = await hrefs(page);
      expect(shown).toHaveLength(200);
      await callers(gateway).rest("/api/v1/chat/send", { message: "new" });
      await page.getByRole("button", { name: "1 new" }).waitFor();
      expect(await hrefs(page)).toEqual(shown);
      await page.getByRole("button", { name: "1 new" }).click();
      await page.getByRole("link", { name: "completed new", exact: true }).waitFor();
      await expect.poll(() => page.evaluate("scrollY")).toBe(0);
      await callers(gateway).rest("/api/v1/chat/send", { message: "newer" });
      await expect.poll(() => page.getByRole("link", { name: /completed new/ }).count()).toBe(2);
    });

    it("MUST leave no gap after live rows have displaced others, and start at the newest with another filter", async () => {
      await using filled = await openFilled(150);
      const { gateway, page } = filled;
      await fill(gateway, 250);
      await untilIdle(gateway);
      const all = await listed(gateway);
      expect(all).toHaveLength(400);
      await expect.poll(() => hrefs(page)).toEqual(all.slice(0, 200));
      const seen = new Set(all.slice(0, 200));
      while ((await page.getByRole("button", { name: "Show older" }).count()) > 0) {
        await goOlder(page);
        for (const href of await hrefs(page)) seen.add(href ?? "");
      }
      expect([...seen]).toEqual(all);
      const surface = page.getByLabel("Surface");
      // A click that meets the page while it draws new rows may go astray.
      await expect
        .poll(async () => {
          if (!(await surface.isVisible())) await page.getByRole("button", { name: "More filters" }).click();
          return await surface.isVisible();
        })
        .toBe(true);
      await surface.selectOption("rpc");
      await expect.poll(async () => (await hrefs(page)).map((href) => href?.split("?")[0])).toEqual(all.slice(0, 100));
    });

    it("MUST show newer rows again at its top without a jump, and the focus remains on its row", async () => {
      await using filled = await openFilled(450, { path: "/console/sessions" });
      const { page } = filled;
      await page.keyboard.press("j");
      const first = await focused(page);
      for (let n = 0; n < 2; n++) await goOlder(page);
      expect(await hrefs(page)).toContain(await focused(page));
      const [top] = await hrefs(page);
      expect(top).not.toBe(first);
      await page.getByRole("button", { name: "Show newer" }).scrollIntoViewIfNeeded();
      await expect.poll(async () => (await hrefs(page))[0]).toBe(first);
      expect(await page.evaluate(`document.querySelector('a[href="${top}"]').getBoundingClientRect().top >= 0`)).toBe(
        true,
      );
      expect((await hrefs(page)).length).toBe(200);
    });

    it.each([
      ["wide", { width: 1280, height: 800 }],
      ["narrow", { width: 400, height: 740 }],
    ] as const)(
      "MUST move neither the rows nor the scroll position when an inspector opens and closes: %s",
      async (_, viewport) => {
        await using gateway = await startPages();
        await fill(gateway, 300);
        await untilIdle(gateway);
        await using page = await open(gateway, { path: "/console/activity", viewport });
        await expect.poll(async () => (await hrefs(page)).length).toBe(100);
        for (let n = 0; n < 2; n++) await goOlder(page);
        const shown = await hrefs(page);
        expect(shown).toHaveLength(200);
        const link = page.locator(`a.row-link[href="${shown[90]}"]`);
        const top = () => link.evaluate((row) => Math.round(row.getBoundingClientRect().top));
        await link.evaluate((row) => row.scrollIntoView({ block: "center" }));
        await untilPainted(page);
        const before = await top();
        const isWide = viewport.width > 1_000;
        const leave = {
          escape: () => page.keyboard.press("Escape"),
          back: () => page.goBack(),
        };
        for (const way of ["escape", "back"] as const) {
          await link.click();
          await page.getByRole("region", { name: "Details" }).getByText("Hello").first().waitFor();
          await untilPainted(page);
          expect(await hrefs(page)).toEqual(shown);
          if (isWide) expect(Math.abs((await top()) - before), way).toBeLessThan(3);
          else expect(await page.evaluate("scrollY")).toBe(0);
          await leave[way]();
          await page.getByRole("region", { name: "Details" }).waitFor({ state: "detached" });
          await untilPainted(page);
          expect(await hrefs(page)).toEqual(shown);
          expect(Math.abs((await top()) - before), way).toBeLessThan(3);
        }
      },
    );
  });
});
