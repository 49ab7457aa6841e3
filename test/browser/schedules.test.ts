import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { faultsOf } from "./axe.ts";
import { browserTests, startPages, TOKENS, untilLive } from "./browser.ts";

const schedules = {
  brief: {
    ...{ cron: "0 9 * * 1-5", timeZone: "Europe/Berlin", missed: "once" },
    message: "Write the brief of the day.",
  },
  sweep: { every: "1h", message: "Look for alerts that nobody has acknowledged.", session: "schedule:alerts" },
};

async function call(url: string, path: string): Promise<void> {
  const headers = { authorization: `Bearer ${TOKENS.admin}`, connection: "close" };
  expect((await fetch(`${url}/api/v1/schedules/${path}`, { method: "POST", headers })).status).toBe(200);
}

function lastRun(page: Page) {
  return page.getByRole("region", { name: "Last run" });
}

browserTests(({ open }) => {
  describe("the schedules on the page Agents", () => {
    it("MUST have their times in words, and the next five in the zones of the reader and of the schedule", async () => {
      await using gateway = await startPages({ schedules });
      await using page = await open(gateway, { path: "/console/agents", timezoneId: "America/New_York" });
      await page.getByRole("tab", { name: "Schedules" }).click();
      const row = page.locator("tbody tr", { hasText: "brief" });
      await row.getByText("Weekdays at 09:00").waitFor();
      await row.getByText("Europe/Berlin").waitFor();
      await page.locator("tbody tr", { hasText: "sweep" }).getByText("Every hour").waitFor();
      await row.getByRole("link").click();
      const next = page.getByRole("region", { name: "Next runs" });
      await next.getByRole("columnheader", { name: "America/New_York" }).waitFor();
      expect(await next.getByRole("columnheader").allTextContents()).toContain("Europe/Berlin");
      const times = await next.locator("tbody tr").allTextContents();
      expect(times).toHaveLength(5);
      for (const time of times) expect(time).toMatch(/^\w+,? \d+ \w+, 0[2-4]:00\w+,? \d+ \w+, 09:00in /);
      expect(page.url()).toContain("/console/schedules/brief");
    });

    it("MUST keep the count and Refresh of the page when the open tab is clicked", async () => {
      await using gateway = await startPages({ schedules });
      await using page = await open(gateway, { path: "/console/schedules/brief" });
      await untilLive(page);
      const refresh = page.getByRole("button", { name: "Refresh" });
      await refresh.waitFor();
      await page.getByRole("tab", { name: "Schedules" }).click();
      await page.waitForURL("**/console/schedules");
      await refresh.waitFor({ timeout: 2_000 });
      expect(await page.locator(".page-head").textContent()).toContain("2 schedules");
    });

    it("MUST run now after a confirmation, and lead to the turn and the request, which lead back", async () => {
      await using gateway = await startPages({ schedules });
      await using page = await open(gateway, { path: "/console/schedules/brief" });
      await untilLive(page);
      await page.getByText("No run yet.").waitFor();
      await page.getByRole("button", { name: "Run now" }).click();
      const dialog = page.getByRole("dialog", { name: "Run the schedule brief now?" });
      expect(await dialog.textContent()).toContain("Starts a turn for main. The planned runs do not change.");
      await dialog.getByRole("button", { name: "Run now" }).click();
      // The end of the turn is pushed.
      await lastRun(page).getByText("completed").waitFor();
      await lastRun(page).getByText("Requested by").waitFor();
      await lastRun(page).getByRole("link", { name: /^dlv_/ }).click();
      await page.getByText("Run requested by console").waitFor();
      expect(await page.getByRole("button", { name: "Replay" }).getAttribute("title")).toContain(
        "Run the schedule again",
      );
      await page.locator(".inspector-head").getByRole("link", { name: "schedules/brief" }).click();
      await lastRun(page)
        .getByRole("link", { name: /^turn_/ })
        .click();
      await page.getByText("Write the brief of the day.").first().waitFor();
      await page.goto(`${gateway.url}/console/activity?surface=schedule`);
      await page.locator("tbody").getByText("Write the brief of the day.").waitFor();
    });

    it("MUST pause after a confirmation and resume, and follow other users, without a reload of the page", async () => {
      await using gateway = await startPages({ schedules });
      await using page = await open(gateway, { path: "/console/schedules/sweep" });
      await untilLive(page);
      await page.getByRole("button", { name: "Pause" }).click();
      const dialog = page.getByRole("dialog", { name: "Pause the schedule sweep?" });
      expect(await dialog.textContent()).toContain("No planned runs start until you resume the schedule.");
      await dialog.getByRole("button", { name: "Pause" }).click();
      await page.getByText("None until the schedule is resumed.").waitFor();
      await page.locator("tbody tr", { hasText: "sweep" }).getByText("paused").waitFor();
      await page.getByRole("button", { name: "Resume" }).click();
      const times = page.getByRole("region", { name: "Next runs" }).locator("tbody tr");
      await expect.poll(() => times.count()).toBe(5);
      await call(gateway.url, "sweep/pause");
      await expect.poll(() => times.count()).toBe(0);
      await call(gateway.url, "sweep/resume");
      await expect.poll(() => times.count()).toBe(5);
      await call(gateway.url, "sweep/run");
      await lastRun(page).getByText("completed").waitFor();
    });

    it("MUST follow planned runs without a reload of the page", async () => {
      await using gateway = await startPages({ schedules: { ping: { every: "2s", message: "Ping" } } });
      await using page = await open(gateway, { path: "/console/schedules/ping" });
      await lastRun(page).getByText("completed").waitFor();
      await lastRun(page).getByText("Planned for").waitFor();
      const request = lastRun(page).getByRole("link", { name: /^dlv_/ });
      const first = await request.textContent();
      await expect.poll(() => request.textContent(), { timeout: 15_000 }).not.toBe(first);
      await request.click();
      await page.getByText(/^Started by the schedule, .* after the planned time$/).waitFor();
    });

    it("MUST be open to an admin API key, which cannot see the agents", async () => {
      await using gateway = await startPages({ schedules });
      await using page = await open(gateway, { path: "/console/agents", token: TOKENS.admin });
      await page.getByText("API keys can't use this.").waitFor();
      await page.getByRole("tab", { name: "Schedules" }).click();
      await page.getByRole("link", { name: "brief" }).click();
      await page.getByRole("button", { name: "Pause" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Pause" }).click();
      await page.getByRole("button", { name: "Resume" }).waitFor();
    });

    it("MUST show how to configure the first one, and show it once it is configured", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/schedules" });
      await untilLive(page);
      await page.getByText("No schedules are configured.").waitFor();
      await page.getByText("Add one to gateway.json5:").waitFor();
      const block = await page.locator(".command code").textContent();
      const file = join(gateway.folder, "gateway.json5");
      writeFileSync(
        file,
        readFileSync(file, "utf8").replace("{", () => `{\n${block}`),
      );
      await page.locator("tbody").getByText("Weekdays at 09:00").waitFor();
    });

    it("MUST have no serious axe violations, and fit a width of 360 px", async () => {
      await using gateway = await startPages({ schedules });
      await call(gateway.url, "brief/run");
      await call(gateway.url, "sweep/pause");
      for (const path of ["/console/schedules", "/console/schedules/brief", "/console/schedules/sweep"]) {
        await using page = await open(gateway, { path, timezoneId: "Asia/Kolkata" });
        await page.getByText("Weekdays at 09:00").first().waitFor();
        for (const width of [1280, 360]) {
          await page.setViewportSize({ width, height: 740 });
          for (const colorScheme of ["light", "dark"] as const) {
            await page.emulateMedia({ colorScheme });
            expect(await faultsOf(page, colorScheme)).toEqual([]);
          }
          expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
        }
      }
    });
  });
});
