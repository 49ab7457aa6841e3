import { describe, expect, it } from "vitest";
import { faultsOf } from "./axe.ts";
import { browserTests, startPages, TOKENS } from "./browser.ts";

const budgets = {
  daily: { per: "day", timeZone: "Europe/Berlin", tokens: 1_000, cost: 25 },
  tiny: { per: "hour", tokens: 1, sources: ["webhook"] },
} as const;

browserTests(({ open }) => {
  describe("the page Usage", () => {
    it("MUST show each budget with its bars, and a grant without a reload", async () => {
      await using pages = await startPages({ budgets: structuredClone(budgets) as never });
      const call = (path: string, body: object) =>
        fetch(`${pages.url}${path}`, {
          method: "POST",
          headers: { authorization: `Bearer ${TOKENS.console}`, "content-type": "application/json" },
          body: JSON.stringify(body),
        });
      await call("/api/v1/chat/send", { message: "x".repeat(2_000) });
      await using page = await open(pages, { path: "/console/usage" });
      const section = page.getByRole("region", { name: "Budgets" });
      const bar = section.getByRole("meter", { name: "daily, tokens" });
      await bar.waitFor();
      expect(await bar.getAttribute("aria-valuetext")).toMatch(/^1,000 of 1,000 tokens, 100 %$/);
      await section.getByText("spent: turns are refused").waitFor();
      expect(await section.getByRole("meter").count()).toBe(3);
      for (const scheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme: scheme });
        expect(await faultsOf(page, scheme)).toEqual([]);
      }
      await call("/api/v1/budgets/daily/grant", { tokens: 1_000 });
      await section.getByText("1,000 of 2,000 tokens").waitFor();
      await page.setViewportSize({ width: 360, height: 800 });
      expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360);
    });
  });
});
