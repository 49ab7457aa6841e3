import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { browserTests, startPages } from "../../browser/browser.ts";
import { sendSteadily, untilIdle } from "../../browser/many.ts";

const PER_SECOND = 200;
/** `TAIL_SECONDS=600` is the long form. */
const SECONDS = Number(process.env.TAIL_SECONDS ?? 20);

/** A tenth more is not growth, and neither is the memory of one compiled script. */
const SLACK = 524_288;

/** The bytes of the page's objects after a garbage collection. */
async function heapOf(page: Page): Promise<number> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  for (let n = 0; n < 2; n++) await session.send("HeapProfiler.collectGarbage");
  const { metrics } = await session.send("Performance.getMetrics");
  await session.detach();
  return metrics.find(({ name }) => name === "JSHeapUsedSize")?.value ?? Number.NaN;
}

function rowsOf(page: Page): Promise<number> {
  return page.locator("table.rows tbody tr").count();
}

browserTests(({ open }) => {
  describe("a page that follows 200 requests a second", () => {
    it("MUST use no more memory afterwards than before, and remain bounded and current", {
      timeout: 900_000,
    }, async () => {
      await using gateway = await startPages({ recorder: { entries: 20_000 } });
      await using live = await open(gateway);
      await using activity = await open(gateway, { path: "/console/activity" });
      const pages = { live, activity };
      for (const page of Object.values(pages)) await page.locator(".live-sign[data-state='live']").first().waitFor();
      const follow = async (seconds: number) => {
        await sendSteadily(gateway, { perSecond: PER_SECOND, seconds });
        await untilIdle(gateway);
        // The newest row is shown: no row is waiting.
        for (const page of Object.values(pages)) {
          await page
            .locator("td[data-name='When'] time", { hasText: /^([0-5]s ago|now)$/ })
            .first()
            .waitFor();
          await page.waitForLoadState("networkidle");
        }
      };
      // A list that fills up to its limit is not growth, and neither are compiled scripts.
      await follow(Math.max(12, SECONDS / 10));
      const before = [await heapOf(pages.live), await heapOf(pages.activity)];
      await follow(SECONDS);
      const after = [await heapOf(pages.live), await heapOf(pages.activity)];
      const mib = (of: number[]) => of.map((bytes) => (bytes / 1_048_576).toFixed(2)).join(" and ");
      console.log(`the heaps of Live and Activity: ${mib(before)} MiB before, ${mib(after)} MiB after ${SECONDS} s`);
      for (const [n, bytes] of after.entries()) expect(bytes).toBeLessThan((before[n] ?? 0) * 1.1 + SLACK);
      expect(await rowsOf(pages.activity)).toBe(200);
      expect(await rowsOf(pages.live)).toBe(40);
    });
  });
});
