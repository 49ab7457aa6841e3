import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { root } from "#test/harness/process.ts";
import { faultsOf } from "./axe.ts";
import { browserTests, callers, codeFor, startPages, TOKENS } from "./browser.ts";
import { pages, pathOf, untilWhole } from "./pages.ts";
import { createSeed } from "./seed.ts";

/** The pixels by which the page, or a part of it that is not code, is too wide. */
const WIDER = `Math.max(...[document.documentElement, ...document.querySelectorAll(".tabs, .scroll-x")]
  .map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth))`;

const NARROW = { width: 360, height: 800 };
const WIDE = { width: 1280, height: 800 };

/** The faults of a loaded page, after a change of its theme. */
async function faultsAt(page: Page, colorScheme: "light" | "dark"): Promise<string[]> {
  await page.emulateMedia({ colorScheme });
  const faults = await faultsOf(page, colorScheme);
  const over = (await page.evaluate(WIDER)) as number;
  return over > 0 ? [...faults, `${over} px too wide`] : faults;
}

browserTests(({ open }) => {
  describe("every page of the documentation", () => {
    it("MUST have no serious axe violations in light and dark, and fit a width of 360 px", {
      timeout: 240_000,
    }, async () => {
      await using gateway = await startPages();
      const names = readdirSync(join(root, "dist/docs")).filter(
        (name) => name.endsWith(".html") && name !== "root.html",
      );
      const found: string[] = [];
      await using page = await open(gateway, { path: "/docs", token: "", viewport: NARROW });
      for (const path of ["/docs", ...names.map((name) => `/docs/${name}`)]) {
        await page.goto(gateway.url + path);
        for (const colorScheme of ["light", "dark"] as const)
          found.push(...(await faultsAt(page, colorScheme)).map((fault) => `${path}, ${colorScheme}: ${fault}`));
      }
      expect(names.length).toBeGreaterThan(30);
      expect(found).toEqual([]);
    });

    it("MUST show the results of a search within 360 px", async () => {
      await using gateway = await startPages();
      const viewport = { width: 360, height: 740 };
      await using page = await open(gateway, { path: "/docs", token: "", viewport });
      await page.getByLabel("Search the documentation").fill("resume stream");
      const first = page.locator("#found a").first();
      await first.waitFor();
      const { x = -1, width = 0 } = (await first.boundingBox()) ?? {};
      expect([x >= 0, x + width <= viewport.width]).toEqual([true, true]);
      expect(await first.getAttribute("href")).toBe("websocket.html#resume-a-stream");
    });
  });

  describe("every page of the console", async () => {
    it.each(["full", "empty"])(
      "MUST have no serious axe violations, and fit 360 px, light and dark: a gateway that is %s",
      async (state) => {
        await using seed = await createSeed();
        await using gateway = await startPages(state === "full" ? seed.config : {});
        if (state === "full") await seed.fill(gateway);
        const found: string[] = [];
        await using page = await open(gateway, { reducedMotion: "reduce" });
        for (const name of pages) {
          await page.setViewportSize(WIDE);
          await page.goto(gateway.url + pathOf(name));
          await untilWhole(page, name);
          for (const [colorScheme, viewport] of [
            ["light", WIDE],
            ["dark", WIDE],
            ["light", NARROW],
          ] as const) {
            await page.setViewportSize(viewport);
            const where = `${name}, ${colorScheme}, ${viewport.width} px`;
            found.push(...(await faultsAt(page, colorScheme)).map((fault) => `${where}: ${fault}`));
          }
        }
        expect(found).toEqual([]);
      },
      240_000,
    );

    it.each(["light", "dark"] as const)(
      "MUST have no serious axe violations, and fit 360 px, before sign-in: %s",
      async (colorScheme) => {
        // The longest name, in one word.
        const keys = [{ name: "W".repeat(64), key: TOKENS.admin, scopes: ["admin"] }];
        await using gateway = await startPages({
          gateway: { console: { token: TOKENS.console }, rest: { auth: { keys } } },
        });
        await using page = await open(gateway, { token: "", colorScheme, viewport: { width: 360, height: 740 } });
        await page.getByRole("heading", { name: "Sign in", exact: true }).waitFor();
        const found = [...(await faultsOf(page, colorScheme))];
        await page.evaluate(`location.hash = "#code=${await codeFor(gateway.url, TOKENS.admin)}"`);
        await page.getByRole("heading", { name: "Sign in as " }).waitFor();
        found.push(...(await faultsOf(page, colorScheme)));
        expect(found).toEqual([]);
        expect(await page.evaluate(WIDER)).toBe(0);
      },
    );

    it("MUST show the actions of a request on a narrow screen, above the navigation", async () => {
      await using gateway = await startPages({
        webhooks: {
          token: TOKENS.webhook,
          mappings: { deploys: { match: { "body.environment": "production" }, message: "A deploy" } },
        },
      });
      const { deliveryId } = await callers(gateway).hook("/hooks/deploys", { environment: "staging" });
      const viewport = { width: 360, height: 740 };
      await using page = await open(gateway, { path: `/console/d/${deliveryId}`, viewport });
      await page.getByText("No mapping matched").waitFor();
      const [bar, nav] = [page.locator(".bottom-bar"), page.locator(".bottom")];
      const [above, below] = [await bar.boundingBox(), await nav.boundingBox()];
      expect((above?.y ?? 0) + (above?.height ?? 0)).toBe(below?.y);
      expect(await bar.evaluate(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)).toBe(0);
      expect(await page.evaluate(WIDER)).toBe(0);
      await page.getByRole("button", { name: "Dry run" }).click();
      await page.getByRole("dialog").getByText("No mapping matches").waitFor();
    });

    it("MUST have exact names for the links of the navigation", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway);
      const links = page.getByRole("navigation", { name: "Pages", exact: true }).getByRole("listitem");
      await links.first().waitFor();
      expect((await links.allTextContents()).map((text) => text.trim())).toEqual([...pages]);
    });
  });
});
