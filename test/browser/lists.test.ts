import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { browserTests, callers, startPages } from "./browser.ts";
import { fill, untilIdle } from "./many.ts";

const hrefs = (page: Page): Promise<(string | null)[]> =>
  page.locator("a.row-link").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
const focused = (page: Page): Promise<string | null> => page.evaluate("document.activeElement.getAttribute('href')");
const untilLive = (page: Page) => page.locator(".live-sign[data-state='live']").first().waitFor();
/** Answers the row that was last before. */
const goOlder = async (page: Page): Promise<string | null> => {
  const last = (await hrefs(page)).at(-1) ?? null;
  await page.getByRole("button", { name: "Show older" }).scrollIntoViewIfNeeded();
  await expect.poll(async () => (await hrefs(page)).at(-1)).not.toBe(last);
  return last;
};

browserTests(({ open }) => {
  describe("a list of more rows than are shown", () => {
    it("MUST go older and newer by the keyboard, and keep the focus on its way", async () => {
      await using gateway = await startPages();
      await fill(gateway, 250);
      await untilIdle(gateway);
      await using opened = await open(gateway, { path: "/console/activity" });
      const { page, complaints } = opened;
      await untilLive(page);
      await expect.poll(async () => (await hrefs(page)).length).toBe(100);
      const [first] = await hrefs(page);
      const seen: (string | null)[] = [];
      for (let n = 0; n < 250; n++) {
        await page.keyboard.press("j");
        if (seen.length > 0) await expect.poll(() => focused(page)).not.toBe(seen.at(-1));
        seen.push(await focused(page));
      }
      expect(new Set(seen).size).toBe(250);
      expect(seen).not.toContain(null);
      expect(await page.getByRole("button", { name: "Show older" }).count()).toBe(0);
      expect((await hrefs(page)).length).toBeLessThanOrEqual(200);
      for (let n = 248; n >= 0; n--) {
        await page.keyboard.press("k");
        await expect.poll(() => focused(page)).toBe(seen[n]);
      }
      expect((await hrefs(page))[0]).toBe(first);
      expect(complaints).toEqual([]);
    });

    it("MUST let new ones wait behind the pill while older ones are shown, and come back to them", async () => {
      await using gateway = await startPages();
      await fill(gateway, 450);
      await untilIdle(gateway);
      await using opened = await open(gateway, { path: "/console/activity" });
      const { page } = opened;
      await untilLive(page);
      await expect.poll(async () => (await hrefs(page)).length).toBe(100);
      for (let n = 0; n < 2; n++) await goOlder(page);
      await page.getByRole("button", { name: "Jump to live" }).waitFor();
      const shown = await hrefs(page);
      expect(shown).toHaveLength(200);
      await callers(gateway).rest("/api/v1/chat/send", { message: "new" });
      await page.getByRole("button", { name: "1 new" }).waitFor();
      expect(await hrefs(page)).toEqual(shown);
      await page.getByRole("button", { name: "1 new" }).click();
      await page.getByRole("link", { name: /chat\/send/ }).waitFor();
      await expect.poll(() => page.evaluate("scrollY")).toBe(0);
      await callers(gateway).rest("/api/v1/chat/send", { message: "newer" });
      await expect.poll(() => page.getByRole("link", { name: /chat\/send/ }).count()).toBe(2);
    });

    it("MUST show newer ones again at its top without a jump, and keep the focus that a row had", async () => {
      await using gateway = await startPages();
      await fill(gateway, 450);
      await untilIdle(gateway);
      await using opened = await open(gateway, { path: "/console/sessions" });
      const { page } = opened;
      await untilLive(page);
      await expect.poll(async () => (await hrefs(page)).length).toBe(100);
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
  });
});
