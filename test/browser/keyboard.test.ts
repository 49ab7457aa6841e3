import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { browserTests, startPages, TOKENS } from "./browser.ts";
import { pages, pathOf, untilWhole } from "./pages.ts";
import { createSeed } from "./seed.ts";

/** Elements that react to a click, and that the keyboard never reaches. A plot's figures are in the table below it. */
const MOUSE_ONLY = `[...document.querySelectorAll("body *")]
  .filter((element) => "click" in getEventListeners(element))
  .filter((element) => !element.matches("a[href], button, input, select, textarea, summary, label, dialog, [tabindex], [role=option]"))
  .map((element) => element.outerHTML.slice(0, 160))`;

/** Elements that can be used and seen. Of a group with arrow keys, only one takes part in the order of Tab. */
const USABLE = `[...document.querySelectorAll("a[href], button, input, select, textarea, summary, [tabindex='0']")]
  .filter((element) => element.tabIndex >= 0 && !element.disabled && element.checkVisibility({ visibilityProperty: true }))`;

type Focused = { html: string; hasRing: boolean };

async function evaluate(page: Page, expression: string): Promise<unknown> {
  const session = await page.context().newCDPSession(page);
  const asked = { expression, includeCommandLineAPI: true, returnByValue: true };
  const { result } = await session.send("Runtime.evaluate", asked);
  await session.detach();
  return result.value;
}

/** Moves through the page with only Tab, and marks each element that had the focus. */
async function tabThrough(page: Page, most: number): Promise<Focused[]> {
  const seen: Focused[] = [];
  for (let n = 0; n < most; n++) {
    await page.keyboard.press("Tab");
    const focused = (await page.evaluate(`(() => {
      const element = document.activeElement;
      if (!element || element === document.body || element.dataset.reached) return undefined;
      element.dataset.reached = "yes";
      // The link of a row shows the ring around its row.
      const styles = [getComputedStyle(element), getComputedStyle(element, "::after")];
      const hasRing = styles.some(({ outlineStyle, boxShadow }) => outlineStyle !== "none" || boxShadow !== "none");
      return { html: element.outerHTML.slice(0, 160), hasRing };
    })()`)) as Focused | undefined;
    if (!focused && n > 0) break;
    if (focused) seen.push(focused);
  }
  return seen;
}

async function newestDelivery({ url }: { url: string }): Promise<string> {
  const headers = { authorization: `Bearer ${TOKENS.console}` };
  const answer = await fetch(`${url}/api/v1/deliveries?surface=hooks&outcome=completed&limit=1`, { headers });
  const { deliveries } = (await answer.json()) as { deliveries: { delivery_id: string }[] };
  return String(deliveries[0]?.delivery_id);
}

browserTests(({ open }) => {
  describe("every page without a mouse", () => {
    it("MUST reach every control by Tab, and show the focus", async () => {
      await using seed = await createSeed();
      await using gateway = await startPages(seed.config);
      await seed.fill(gateway);
      await using page = await open(gateway, { viewport: { width: 1280, height: 800 }, reducedMotion: "reduce" });
      const faults: string[] = [];
      const [delivery, session] = [await newestDelivery(gateway), "chat:ada"];
      const views = [
        ...pages.map((name) => ({ name, at: pathOf(name) })),
        { name: "Activity", at: `/console/d/${delivery}` },
        { name: "Sessions", at: `/console/s/${encodeURIComponent(session)}` },
      ];
      for (const { name, at } of views) {
        await page.goto(gateway.url + at);
        await untilWhole(page, name);
        const count = Number(await evaluate(page, `${USABLE}.length`));
        const reached = await tabThrough(page, count + 20);
        for (const { html, hasRing } of reached) if (!hasRing) faults.push(`${at}: shows no focus: ${html}`);
        const left = `${USABLE}.filter(({ dataset }) => !dataset.reached).map(({ outerHTML }) => outerHTML.slice(0, 160))`;
        for (const html of (await evaluate(page, left)) as string[]) faults.push(`${at}: Tab never comes to ${html}`);
        for (const html of (await evaluate(page, MOUSE_ONLY)) as string[])
          faults.push(`${at}: for a mouse alone: ${html}`);
        expect(reached.length).toBeGreaterThan(12);
      }
      expect(faults).toEqual([]);
    }, 240_000);
  });
});
