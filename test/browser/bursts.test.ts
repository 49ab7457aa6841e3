import { describe, expect, it } from "vitest";
import { faultsOf } from "./axe.ts";
import { browserTests, callers, startPages, TOKENS, untilLive } from "./browser.ts";

const WEBHOOKS = {
  token: TOKENS.webhook,
  mappings: {
    review: {
      match: { "body.kind": "push" },
      message: "Review {body.title}",
      session: "webhook:pr:{body.number}",
      coalesce: { key: "{body.number}", window: "1h", maxWait: "2h" },
    },
  },
};
const push = { kind: "push", number: 42, title: "the sweep" };

browserTests(({ open }) => {
  describe("webhooks that become one turn", () => {
    it("MUST lead from each request to the first one, and from the first one to all", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      const { hook } = callers(gateway);
      const first = String((await hook("/hooks/review", push)).deliveryId);
      await using page = await open(gateway, { path: `/console/d/${first}` });
      await untilLive(page);
      await page.getByText("Turn waits 1 h 00 m for more requests with the same key").waitFor();
      await page.getByText(/^Waiting, /).waitFor();
      const joined = await hook("/hooks/review", { ...push, title: "the sweep again" });
      expect(joined).toMatchObject({ coalesced: true });
      const second = String(joined.deliveryId);
      // The timeline of the first request follows.
      await page.getByText("Request 2 joined").waitFor();
      await page.locator(".timeline").getByRole("link", { name: second }).click();
      await page.getByRole("article", { name: `Request ${second}` }).waitFor();
      await page.locator(".inspector-head").getByText("coalesced").waitFor();
      await page.getByText("Joined an open turn as request 2").waitFor();
      await page.locator(".inspector-head").getByRole("link", { name: first }).click();
      await page.getByRole("link", { name: "joined by 1 request" }).click();
      await expect.poll(() => page.locator("tbody tr").count()).toBe(2);
      await page.goto(`${gateway.url}/console/activity?outcome=coalesced`);
      await page.locator("tbody").getByText("Review the sweep again").waitFor();
      expect(await page.locator("tbody tr").count()).toBe(1);
    });

    it("MUST be shown by a dry run with their session, their key and the open turn, and in the list of the mappings", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      const { hook } = callers(gateway);
      await using page = await open(gateway, { path: "/console/webhooks?tab=try&target=review" });
      const payload = page.getByLabel("Payload");
      await payload.fill(JSON.stringify(push));
      const result = page.getByRole("region", { name: "review matches" });
      await result.getByText("starts a turn that waits 1 h for more requests, at most 2 h").waitFor();
      await result.getByText("webhook:pr:42").waitFor();
      const { turnId } = await hook("/hooks/review", push);
      await payload.fill(JSON.stringify({ ...push, title: "it again" }));
      await page.getByText("review would join an open turn.").waitFor();
      await result.getByText("joins as request 2").waitFor();
      expect(await result.getByRole("link").getAttribute("href")).toBe(`/console/t/${String(turnId)}`);
      await payload.fill(JSON.stringify({ kind: "push", title: "no number" }));
      await result.locator(".note").getByText("body.number").first().waitFor();
      for (const colorScheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme });
        expect(await faultsOf(page, colorScheme)).toEqual([]);
      }
      await page.setViewportSize({ width: 360, height: 740 });
      expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
      await page.setViewportSize({ width: 1280, height: 800 });
      await page.goto(`${gateway.url}/console/webhooks`);
      await page.locator("tbody").getByText("one turn per {body.number}").waitFor();
    });
  });
});
