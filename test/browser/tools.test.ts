import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { browserTests, callers, startPages, TOKENS, untilLive } from "./browser.ts";

const SECRET = "github-secret-of-the-pages-12";
const WEBHOOKS = {
  token: TOKENS.webhook,
  mappings: {
    push: {
      match: { "headers.x-github-event": "push", "body.ref": "refs/heads/main" },
      message: "A push to {body.ref}",
      session: "webhook:github",
      verify: { type: "github", secret: SECRET },
    },
    deploy: { match: { "body.kind": "deploy" }, message: "Deploy of {body.service}", session: "webhook:deploys" },
  },
};

browserTests(({ open }) => {
  describe("the pages for tests", () => {
    it("MUST show the mapping that matches a payload while it is typed, and the pair that failed", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      await using page = await open(gateway, { path: "/console/webhooks" });
      await page.getByRole("tab", { name: "Try" }).click();
      const payload = page.getByRole("textbox", { name: "Payload" });
      await payload.fill('{"kind":"deploy","service":"<img src=x onerror=alert(1)>"}');
      await page.getByText("Deploy of <img src=x onerror=alert(1)>").waitFor();
      await payload.fill('{"kind":"rollback"}');
      await page.getByRole("cell", { name: '"rollback"' }).waitFor();
      // The nearest miss is first, and bold.
      const nearest = page.locator("table.tried tbody tr").first();
      expect(await nearest.getByRole("cell").first().textContent()).toBe("deploy");
      expect(await nearest.evaluate((row) => row.className)).toBe("nearest");
      await payload.fill('{"kind":');
      await page.getByText("Invalid JSON").waitFor();
    });

    it("MUST fill the tester with a recorded webhook", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      const { deliveryId } = await callers(gateway).hook("/hooks/deploy", { kind: "deploy", service: "billing" });
      await using page = await open(gateway, { path: `/console/webhooks?delivery=${deliveryId}` });
      await page.getByText("Deploy of billing").waitFor();
      // A webhook that is chosen from the list is tried at its path.
      const recorded = page.getByLabel("Recorded");
      await recorded.selectOption("");
      await recorded.selectOption(String(deliveryId));
      await page.waitForURL(/target=deploy/);
    });

    it("MUST sign a test webhook like its sender, and link to the delivery", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      await using page = await open(gateway, { path: "/console/webhooks?send=push" });
      const sent = page.getByRole("button", { name: "Sign and send" });
      await page.getByLabel("GitHub secret").fill("a wrong secret");
      await sent.click();
      await page.getByRole("status").filter({ hasText: "401 Unauthorized" }).waitFor();
      await page.getByLabel("GitHub secret").fill(SECRET);
      await sent.click();
      await page.getByRole("status").filter({ hasText: "200 OK" }).waitFor();
      await page.getByRole("dialog").getByRole("link", { name: /^dlv_/ }).click();
      await page.getByRole("heading", { name: "Activity" }).waitFor();
      expect(await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])")).not.toContain(SECRET);
    });

    it("MUST show a command on an empty page with the path of webhooks", async () => {
      await using gateway = await startPages({ webhooks: { token: TOKENS.webhook, path: "/in" } });
      await using page = await open(gateway, { path: "/console/events" });
      const command = await page.locator(".empty .command code").textContent();
      expect(command).toContain(`curl '${gateway.url}/in/wake'`);
      expect(command).toContain('authorization: Bearer $WEBHOOK_TOKEN"');
      await page.getByRole("tab", { name: "Handled" }).click();
      await page.getByText("No events were handled recently.").waitFor();
      await expect.poll(() => page.locator(".empty .command code").textContent()).toBe(command);
    });

    it("MUST show a command on Usage before the first use, and the numbers afterwards", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/usage" });
      const command = page.locator(".empty .command code");
      expect(await page.getByRole("button", { name: /^Download CSV/ }).getAttribute("title")).toMatch(/No usage/);
      expect(await command.textContent()).toContain(`curl '${gateway.url}/api/v1/chat/send'`);
      await untilLive(page);
      await callers(gateway).rest("/api/v1/chat/send", { message: "Hello" });
      await page.getByRole("cell", { name: "main" }).waitFor();
      expect(await command.count()).toBe(0);
    });

    it("MUST leave the focus on the page when an empty page's button has turned it into a list", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/activity" });
      await page.getByRole("button", { name: "Send a test message" }).press("Enter");
      await page.getByRole("link", { name: /Hello from the console/ }).waitFor();
      expect(await page.evaluate("document.activeElement.id")).toBe("page");
    });

    it("MUST offer to create a key next to a command that needs the first one", async () => {
      await using gateway = await startPages({ gateway: { console: { token: TOKENS.console } } });
      await using page = await open(gateway, { path: "/console/activity" });
      await page.getByText("No API key exists yet.").waitFor();
      await page.getByRole("link", { name: "Create a key" }).click();
      await page.getByRole("dialog").getByLabel("Name").fill("first");
      await page.getByRole("button", { name: "Create", exact: true }).click();
      await page.getByRole("button", { name: "I have copied the key" }).click();
      expect(page.url()).toBe(`${gateway.url}/console/settings`);
      await page.goto(`${gateway.url}/console/activity`);
      await page.locator(".command").waitFor();
      await page.getByText("Waiting for the first request").waitFor();
      expect(await page.getByText("No API key exists yet.").count()).toBe(0);
    });

    it("MUST show how to create an RPC token if there is none", async () => {
      await using gateway = await startPages({
        gateway: { console: { token: TOKENS.console } },
        webhooks: { enabled: false },
      });
      await using page = await open(gateway, { path: "/console/settings/tokens" });
      await page.getByText("No RPC tokens yet.").waitFor();
      expect(await page.locator(".empty .command code").textContent()).toContain("rpc: { auth: { tokens:");
    });

    it("MUST show when Settings was read, and the last reload, accepted or refused", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/settings" });
      await untilLive(page);
      await page.getByText(/^Updated /).waitFor();
      await page.getByRole("button", { name: "Refresh" }).waitFor();
      await page.getByRole("tab", { name: "Configuration" }).click();
      await page.getByText("Not reloaded since the gateway started.").waitFor();
      await page.getByRole("button", { name: "Reload now" }).click();
      await page.getByText(/^Last reload .*, by an RPC call:/).waitFor();
      await page.getByText("No changes in the file.").waitFor();
      const file = join(gateway.folder, "gateway.json5");
      const text = readFileSync(file, "utf8");
      writeFileSync(file, text.replace("Repeats each message.", "Says it again."));
      await page.getByText(/^Last reload .*, after a file change:/).waitFor();
      await page.getByText("Reloaded.").waitFor();
      writeFileSync(file, "{");
      await page.getByText(/^Updated /).waitFor();
      await expect
        .poll(async () => {
          await page.getByRole("button", { name: "Refresh" }).click();
          return await page.getByText(/^Invalid configuration\./).count();
        })
        .toBe(1);
      await page.getByRole("tab", { name: "This browser" }).click();
      expect(await page.getByRole("button", { name: "Refresh" }).count()).toBe(0);
    });

    it("MUST show the age of each token, and how much of each rate limit is used", async () => {
      const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);
      const token = [
        { value: TOKENS.webhook, since: daysAgo(41) },
        { name: "<b>retired</b>", value: "webhook-token-of-long-ago-12", since: daysAgo(200) },
        { name: "undated", value: "webhook-token-of-no-known-day" },
      ];
      const rateLimit = { maxRequests: 2, windowMs: 60_000 };
      await using gateway = await startPages({ webhooks: { ...WEBHOOKS, token, rateLimit } });
      for (let n = 0; n < 3; n++) await callers(gateway).hook("/hooks/wake", { text: "hi" });
      await using page = await open(gateway, { path: "/console/webhooks?tab=senders", token: TOKENS.admin });
      const senders = page.getByRole("table", { name: /^Senders/ });
      const row = (name: string) => senders.getByRole("row", { name: `${name} ` });
      await row("shared").getByText("41 days old (rotate every 90)").waitFor();
      await row("shared").getByText("2 of 2 per 1 min").waitFor();
      expect(await row("shared token").getByRole("meter").getAttribute("aria-valuenow")).toBe("2");
      await row("<b>retired</b>").getByText("200 days old (rotate every 90)").waitFor();
      await row("undated").getByText("age unknown").waitFor();
      await row("push").getByText("0 of 2 per 1 min").waitFor();
    });

    it("MUST show a call's raw exchange without the token, and ask before a call that changes something", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/api?call=deliveries.list" });
      const send = page.getByRole("button", { name: "Send" });
      await send.click();
      await page.getByText("authorization: Bearer $REST_API_KEY").waitFor();
      expect(await page.locator("body").textContent()).not.toContain(TOKENS.console);
      await page.goto(`${gateway.url}/console/api?call=system.reload`);
      await send.click();
      await page.getByRole("dialog", { name: "Send system.reload?" }).waitFor();
    });

    it("MUST disable a method that a REST key may not call, and one that requires a sign-in code, with the reason", async () => {
      await using gateway = await startPages();
      await using signedIn = await open(gateway, { path: "/console/api?call=codes.redeem" });
      await signedIn.getByText("Needs a sign-in code instead of a token.").first().waitFor();
      expect(await signedIn.getByRole("button", { name: /^Send/ }).getAttribute("aria-disabled")).toBe("true");
      await using page = await open(gateway, { path: "/console/api?call=agent.list", token: TOKENS.admin });
      const send = page.getByRole("button", { name: /^Send/ });
      await send.waitFor();
      expect(await send.getAttribute("aria-disabled")).toBe("true");
      expect(await send.getAttribute("title")).toContain("API keys can't use this");
    });
  });
});
