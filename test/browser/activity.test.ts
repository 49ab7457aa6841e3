import type { Route } from "playwright-core";
import { describe, expect, it } from "vitest";
import { browserTests, callers, startPages, untilLive } from "./browser.ts";

const WEBHOOKS = {
  token: "webhook-token-of-the-pages-12",
  mappings: {
    deploy: {
      match: { "body.kind": "deploy" },
      message: "Deploy of {body.service} {body.state}",
      session: "webhook:deploys",
    },
  },
};

/** Text that must never be anything but text. */
const HOSTILE =
  '<img src=x onerror="window.ran=1"><script>window.ran=1</script>[a](javascript:window.ran=1)\u202e\u001b[31m';

browserTests(({ open }) => {
  describe("the flight recorder's pages", () => {
    it("MUST offer to resend a reply that an older gateway left at `retrying`, and no other open reply", async () => {
      await using gateway = await startPages();
      const { deliveryId } = await callers(gateway).hook("/hooks/agent", { message: "Hello" });
      await using page = await open(gateway, { path: `/console/d/${deliveryId}` });
      await page.getByText("Reply completed").first().waitFor();
      let endedAt = new Date();
      await page.route(`**/api/v1/deliveries/${deliveryId}`, async (route) => {
        const delivery = (await (await route.fetch()).json()) as object;
        const announcement = { channel: "ops", state: "retrying", reason: null };
        return route.fulfill({ json: { ...delivery, announcement, ended_at: endedAt.toISOString() } });
      });
      const resend = page.getByRole("button", { name: "Resend reply" });
      await page.reload();
      await resend.waitFor();
      expect(await resend.getAttribute("title")).toContain("still being delivered");
      endedAt = new Date(Date.now() - 2 * 3_600_000);
      await page.reload();
      await resend.click();
      // The gateway decides.
      await page.getByRole("dialog").getByRole("button", { name: "Resend", exact: true }).click();
      await page.getByRole("dialog").getByText("The turn has no reply that was sent to a channel.").waitFor();
    });

    it("MUST list recorded requests, filter by the address, and show a request's timeline", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      const { hook, rest } = callers(gateway);
      await rest("/api/v1/chat/send", { message: "Hello" });
      const { deliveryId } = await hook("/hooks/deploy", { kind: "deploy", service: "billing", state: "done" });
      await using page = await open(gateway, { path: "/console/activity" });
      await page.getByRole("button", { name: "More filters" }).click();
      await page.getByLabel("Surface").selectOption("hooks");
      await page.waitForURL(/\?surface=hooks$/);
      const rows = page.getByRole("table", { name: "Requests, newest first" }).getByRole("row");
      await expect.poll(() => rows.count()).toBe(2);
      await page.getByLabel("Agent", { exact: true }).fill("nobody");
      await page.getByText("No request matches these filters.").waitFor();
      await page.getByLabel("Agent", { exact: true }).fill("main");
      await page.waitForURL(/\?surface=hooks&agent=main$/);
      await page.getByRole("link", { name: "completed Deploy of billing done" }).click();
      await page.waitForURL(new RegExp(`/console/d/${deliveryId}`));
      await page.getByRole("button", { name: "Mapping deploy matched" }).waitFor();
      expect(await page.locator(".step-text").first().textContent()).toBe("Deploy of billing done");
      // A step opens to the details in the recorder.
      await page.getByRole("button", { name: "Mapping deploy matched" }).click();
      await page.getByText("mapping.tried").first().waitFor();
      await page.getByRole("tab", { name: "Request" }).click();
      await page.waitForURL(/tab=request/);
      // A value of a payload is copied in the form that a message or a match needs.
      await page.getByRole("button", { name: '"billing"', exact: true }).click();
      await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
      await page.getByRole("button", { name: "Copy the match line" }).click();
      await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toBe('"body.service": "billing"');
      await page.getByRole("button", { name: "Copy {body.service}" }).click();
      await expect.poll(() => page.evaluate("navigator.clipboard.readText()")).toBe("{body.service}");
      await page.keyboard.press("Escape");
      await page.waitForURL(/\/console\/activity/);
    });

    it("MUST NOT show the rows of an earlier filter when its answer arrives late", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      const { hook, rest } = callers(gateway);
      await rest("/api/v1/chat/send", { message: "Hello" });
      await hook("/hooks/wake", { text: "Look at the build." });
      await using page = await open(gateway, { path: "/console/agents" });
      await page.getByRole("link", { name: "main" }).first().waitFor();
      const asked: Route[] = [];
      // The first read hangs; the one for the filter is answered.
      await page.route("**/api/v1/deliveries?*", async (route) => {
        if (asked.push(route) > 1) await route.continue();
      });
      await page.getByRole("link", { name: "Activity" }).click();
      const rows = page.getByRole("table", { name: "Requests, newest first" }).getByRole("row");
      await expect.poll(() => asked.length).toBe(1);
      await page.getByRole("button", { name: "More filters" }).click();
      await page.getByLabel("Surface").selectOption("hooks");
      await expect.poll(() => rows.count()).toBe(2);
      const late = asked[0] as Route;
      expect(late.request().url()).not.toContain("surface");
      // The page may have aborted it: then it has no answer.
      await late.continue().catch(() => {});
      await (await late.request().response())?.finished();
      await page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))");
      expect(await rows.count()).toBe(2);
    });

    it("MUST show the message, the agent, the caller and the reason for a missing reply in a row", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      const { hook, rest, stranger } = callers(gateway);
      await rest("/api/v1/chat/send", { message: "Where is\n\n  my order?" });
      await hook("/hooks/deploy", { kind: "deploy", service: "billing", state: "done" });
      await stranger("/hooks/wake", { text: "Let me in" });
      await using page = await open(gateway, { path: "/console/activity" });
      const rows = page.locator("tbody tr");
      const texts = async () =>
        (await rows.allInnerTexts()).map((text) =>
          text.replaceAll(/\s+/g, " ").replace(/( \d+ m?s)? ?(now|\d+s ago)$/, ""),
        );
      await expect
        .poll(texts)
        .toEqual([
          "⊘ refused /hooks/wake unauthenticated 127.0.0.1",
          "● completed Deploy of billing done main deploy",
          "● completed Where is my order? main ci",
        ]);
      expect(await rows.locator(".work").first().getAttribute("title")).toContain("/hooks/wake");
      await rows.nth(1).getByRole("link").click();
      await expect.poll(() => page.title()).toMatch(/^dlv_.+ · Deploy of billing done · Activity$/);
      await page.keyboard.press("Escape");
      await expect.poll(() => page.title()).toBe("Activity · Agent Gateway");
    });

    it("MUST treat an invalid value in its address as missing, on each page", async () => {
      await using gateway = await startPages();
      await callers(gateway).rest("/api/v1/chat/send", { message: "Hello" });
      await using page = await open(gateway, { path: "/console/activity?surface=x&outcome=y&hours=9e99" });
      await page.getByRole("link", { name: /completed Hello/ }).waitFor();
      for (const days of ["-1", "letters", "0.5"]) {
        await page.goto(`${gateway.url}/console/usage?days=${days}&by=x`);
        await page.getByRole("cell", { name: "main" }).waitFor();
        expect(await page.getByLabel("Period").inputValue()).toBe("7");
      }
      await page.goto(`${gateway.url}/console/settings/configuration?origin=x`);
      await page.getByRole("cell", { name: "agents.main.backend", exact: true }).waitFor();
      await page.goto(`${gateway.url}/console/api?surface=x`);
      await page.getByRole("link", { name: "chat.send", exact: true }).waitFor();
      await page.goto(`${gateway.url}/console/events?status=x`);
      await page.getByText("No events are waiting.").waitFor();
    });

    it("MUST replay by key after a confirmation, and link both deliveries", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      const { deliveryId } = await callers(gateway).hook("/hooks/deploy", { kind: "deploy", service: "a", state: "b" });
      await using page = await open(gateway, { path: `/console/d/${deliveryId}` });
      await page.getByRole("button", { name: "Mapping deploy matched" }).waitFor();
      await page.keyboard.press("r");
      await page.getByText("The mapping deploy starts a turn for main in the session webhook:deploys.").waitFor();
      await page.getByRole("dialog").getByRole("button", { name: "Replay" }).click();
      await page.waitForURL(
        (url) => /\/console\/d\/dlv_/.test(url.pathname) && !url.pathname.endsWith(String(deliveryId)),
      );
      await page.getByText("replay of").waitFor();
      await page
        .getByRole("article")
        .getByRole("link", { name: String(deliveryId) })
        .click();
      await page.waitForURL(new RegExp(String(deliveryId)));
      await page.getByText("replayed as").first().waitFor();
      // An edited body that no mapping matches starts nothing, and both sides of the dialog say so.
      await page.getByRole("button", { name: "Edit and replay" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("starts a turn for").waitFor();
      await dialog.getByLabel("Payload").fill(JSON.stringify({ kind: "other" }));
      await dialog.getByText("The request is recorded and starts no turn.").waitFor();
      expect(await dialog.getByText("starts a turn for").count()).toBe(0);
    });

    it("MUST change a shown row in place, also to an outcome that its filter excludes", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      await callers(gateway).hook("/hooks/wake", { text: "Look at the build." });
      await using page = await open(gateway, { path: "/console/activity?outcome=queued" });
      const outcomes = page.locator(".work > .state:first-child");
      await outcomes.filter({ hasText: "queued" }).waitFor();
      await untilLive(page);
      await callers(gateway).console("/api/v1/agents/main/beat", {});
      await outcomes.filter({ hasText: "handled" }).waitFor();
    });

    it("MUST focus the row of an open inspector, and return to the row", async () => {
      await using gateway = await startPages();
      const { rest } = callers(gateway);
      for (const message of ["one", "two", "three"]) await rest("/api/v1/chat/send", { message });
      for (const width of [1280, 360]) {
        await using page = await open(gateway, { path: "/console/activity", viewport: { width, height: 740 } });
        const row = page.locator("a.row-link").nth(1);
        await row.waitFor();
        for (const key of ["j", "j", "Enter"]) await page.keyboard.press(key);
        await page.getByRole("article").waitFor();
        const here = width > 1_000 ? "a.row-link:focus" : "section.split-inspector:focus";
        expect(await page.locator(here).count()).toBe(1);
        await page.keyboard.press("Escape");
        await page.getByRole("article").waitFor({ state: "detached" });
        await expect.poll(() => row.evaluate((link) => link.matches(":focus"))).toBe(true);
      }
    });

    it("MUST name the agent and the session of a replay of a wake or an agent call, and say if it starts nothing", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      const { hook } = callers(gateway);
      const sent = [
        [await hook("/hooks/wake", { text: "later" }), "Queues a system event for main."],
        [await hook("/hooks/agent", { message: "Hello" }), "Starts a turn for main in a new session."],
        [await hook("/hooks/deploy", { kind: "rollback" }), "No current mapping matches"],
      ] as const;
      await using page = await open(gateway);
      for (const [{ deliveryId }, words] of sent) {
        await page.goto(`${gateway.url}/console/d/${deliveryId}`);
        await page.getByRole("button", { name: "Replay", exact: true }).click();
        await page.getByRole("dialog").getByText(words).waitFor();
      }
      // Escape closes an edit without a change, and does not lose one with a change.
      await page.keyboard.press("Escape");
      const dialog = page.getByRole("dialog", { name: "Edit and replay" });
      await page.keyboard.press("e");
      await dialog.waitFor();
      await page.keyboard.press("Escape");
      await dialog.waitFor({ state: "detached" });
      await page.keyboard.press("e");
      await dialog.getByLabel("Payload").fill("{}");
      await page.keyboard.press("Escape");
      await dialog.getByRole("button", { name: "Cancel" }).click();
      await dialog.waitFor({ state: "detached" });
    });

    it("MUST dry-run a stored request with the current mappings", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      const { deliveryId } = await callers(gateway).hook("/hooks/deploy", { kind: "rollback", service: "a" });
      await using page = await open(gateway, { path: `/console/d/${deliveryId}` });
      // The reason why nothing was started, as a table.
      await page.getByRole("cell", { name: "body.kind" }).waitFor();
      await page.getByRole("cell", { name: "rollback" }).waitFor();
      await page.keyboard.press("d");
      await page.getByText("No mapping matches").last().waitFor();
      await page.getByRole("dialog").getByText('"deploy"').waitFor();
    });

    it("MUST show the reason for a refusal, and that a delivery is no longer stored", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      await callers(gateway).stranger("/hooks/wake", { text: "let me in" });
      await using page = await open(gateway, { path: "/console/activity?outcome=refused" });
      await page.getByRole("link", { name: /refused \/hooks\/wake/ }).click();
      await page.getByText("Refused: unknown token").waitFor();
      await page
        .getByText("The sender was not authenticated, so the body was not stored.")
        .first()
        .waitFor({ state: "attached" });
      await page.goto(`${gateway.url}/console/d/dlv_01M7YN0XENG6PX2VW8BN0JQS4T`);
      await page.getByText("This request is no longer stored.").waitFor();
      await page.getByText("recorder.entries").waitFor();
    });

    it("MUST find any id by the palette, and move through the list by keys", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      const { hook, rest } = callers(gateway);
      const { turn_id, session_id } = await rest("/api/v1/chat/send", { message: "Hello" });
      const { eventId } = await hook("/hooks/wake", { text: "later" });
      await using page = await open(gateway, { path: "/console/activity" });
      await page.getByRole("link", { name: /completed Hello/ }).waitFor();
      for (const id of [turn_id, eventId, session_id]) {
        await page.keyboard.press("Control+k");
        await page.getByRole("combobox", { name: "Search" }).fill(String(id));
        await page.getByRole("option", { name: /Request,/ }).waitFor();
        await page.keyboard.press("Escape");
      }
      // A session and an event are listed before their requests.
      for (const [id, to] of [
        [session_id, /\/console\/s\//],
        [eventId, /\/console\/e\/evt_/],
        [turn_id, /\/console\/d\/dlv_/],
      ] as const) {
        await page.keyboard.press("Control+k");
        await page.getByRole("combobox", { name: "Search" }).fill(String(id));
        await page.getByRole("option", { name: /Request,/ }).waitFor();
        await page.keyboard.press("Enter");
        await page.waitForURL(to);
      }
      await page.goto(`${gateway.url}/console/activity`);
      await page.getByRole("link", { name: /completed Hello/ }).waitFor();
      await page.keyboard.press("/");
      await page.getByRole("combobox", { name: "Search" }).fill("evt_01M7YN1B2AZD4Q9RXC5HT7N3MA");
      await page.getByText("No matches for this ID.").waitFor();
      await page.keyboard.press("Escape");
      await page.keyboard.press("j");
      await page.keyboard.press("j");
      await page.keyboard.press("Enter");
      await page.waitForURL(/\/console\/d\/dlv_/);
      await page.keyboard.press("g");
      await page.keyboard.press("s");
      await page.getByRole("heading", { name: "Sessions" }).waitFor();
    });

    it("MUST show text from outside as text", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      const { hook } = callers(gateway);
      const { deliveryId } = await hook(
        "/hooks/deploy",
        { kind: "deploy", service: HOSTILE, state: HOSTILE, [HOSTILE]: "x".repeat(100_000) },
        { "x-note": "<img src=x onerror=window.ran=1>" },
      );
      await using page = await open(gateway, { path: `/console/d/${deliveryId}` });
      await page.locator(".step-text").first().waitFor();
      await page.getByRole("tab", { name: "Request" }).click();
      await page.getByText("x-note").waitFor();
      expect(await page.evaluate("window.ran")).toBeUndefined();
      expect(await page.locator("#page img, #page script").count()).toBe(0);
    });
  });
});
