import { describe, expect, it } from "vitest";
import { browserTests, callers, startPages, untilLive } from "./browser.ts";

/** Slow 4G, as in the tools of browsers. */
const SLOW = { offline: false, latency: 400, downloadThroughput: 50_000, uploadThroughput: 50_000 };

browserTests(({ open }) => {
  describe("a slow network", () => {
    it("MUST show that a list is being read, then the list, and follow it live", async () => {
      await using gateway = await startPages();
      const { rest } = callers(gateway);
      for (let n = 0; n < 60; n++) await rest("/api/v1/chat/send", { message: `message ${n}` });
      await using page = await open(gateway);
      const session = await page.context().newCDPSession(page);
      await session.send("Network.enable");
      await session.send("Network.emulateNetworkConditions", SLOW);
      await page.goto(`${gateway.url}/console/activity`);
      await page.locator("[aria-busy='true']").first().waitFor();
      const rows = page.locator(".work > .state:first-child");
      await expect.poll(() => rows.count()).toBeGreaterThan(40);
      await untilLive(page);
      const before = await rows.count();
      await rest("/api/v1/chat/send", { message: "while they watch" });
      await expect.poll(() => rows.count()).toBe(before + 1);
    });

    it("MUST say that the gateway cannot be reached, and continue automatically or by a button", async () => {
      await using gateway = await startPages();
      await callers(gateway).rest("/api/v1/chat/send", { message: "Hello" });
      await using page = await open(gateway, { path: "/console/activity" });
      await untilLive(page);
      await page.context().setOffline(true);
      await page.getByRole("link", { name: "Sessions" }).first().click();
      await page
        .getByText(/cannot be reached/)
        .first()
        .waitFor();
      await page.context().setOffline(false);
      await page
        .getByRole("button", { name: /again|Retry/ })
        .first()
        .click();
      await page.getByRole("link", { name: /chat:/ }).first().waitFor();
    });
  });
});
