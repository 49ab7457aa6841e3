import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { browserTests, startPages } from "./browser.ts";
import { fill, untilIdle } from "./many.ts";

/** A tenth of the number of a long run. */
const MANY = process.env.RUN_LONG ? 100_000 : 10_000;

function rows(page: Page) {
  return page.locator("table.rows tbody tr");
}
function links(page: Page) {
  return page.locator("a.row-link");
}
function hrefs(page: Page): Promise<(string | null)[]> {
  return links(page).evaluateAll((all) => all.map((link) => link.getAttribute("href")));
}

/** Opens a page in a signed-in tab, and returns the milliseconds until it showed its first row. */
async function timeToRows(page: Page, url: string): Promise<number> {
  await page.goto("about:blank");
  await page.goto(url);
  await rows(page).first().waitFor();
  return (await page.evaluate("rowsAfter")) as number;
}

/** Records when a page has its first row. */
const NOTE_ROWS = `(() => {
  const look = () => {
    if (document.querySelector("table.rows tbody tr")) window.rowsAfter = performance.now();
    else requestAnimationFrame(look);
  };
  look();
})()`;

/** Scrolls to the end of the page; returns the last row, and its position on the screen. */
function toEnd(page: Page): Promise<{ href: string; top: number }> {
  return page.evaluate(`(() => {
    scrollTo({ top: document.documentElement.scrollHeight, behavior: "instant" });
    const last = [...document.querySelectorAll("a.row-link")].at(-1);
    return { href: last.getAttribute("href"), top: last.getBoundingClientRect().top };
  })()`);
}
function topOf(page: Page, href: string): Promise<number> {
  return page.evaluate(`document.querySelector('a.row-link[href="${href}"]').getBoundingClientRect().top`);
}

browserTests(({ open }) => {
  describe(`a gateway with ${MANY} sessions and deliveries`, () => {
    it("MUST open its lists, and show at most 200 rows however far the user scrolls", {
      timeout: 600_000,
    }, async () => {
      await using gateway = await startPages({
        store: { type: "sqlite", path: "./gateway.db" },
        recorder: { entries: MANY * 2, bytes: "512MiB" },
      });
      await fill(gateway, MANY);
      await untilIdle(gateway);
      await using page = await open(gateway);
      await page.addInitScript(NOTE_ROWS);
      for (const path of ["activity", "sessions", "activity?outcome=completed", "activity", "sessions"]) {
        const took = await timeToRows(page, `${gateway.url}/console/${path}`);
        console.log(`${path}: first rows after ${took.toFixed(0)} ms`);
      }
      for (const path of ["activity", "sessions"]) {
        await page.goto(`${gateway.url}/console/${path}`);
        await rows(page).first().waitFor();
        const [first] = await hrefs(page);
        const seen = new Set(await hrefs(page));
        for (let n = 0; n < 10; n++) {
          const last = await toEnd(page);
          await expect.poll(async () => (await hrefs(page)).at(-1)).not.toBe(last.href);
          const now = await hrefs(page);
          for (const href of now) seen.add(href);
          expect(now.length).toBeLessThanOrEqual(200);
          expect(await topOf(page, last.href)).toBeCloseTo(last.top, 0);
        }
        expect(seen.size).toBe(1_100);
        await page.keyboard.press(".");
        await expect.poll(async () => (await hrefs(page))[0]).toBe(first);
        expect(await page.evaluate("scrollY")).toBe(0);
      }
    });
  });
});
