import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { faultsOf } from "./axe.ts";
import { browserTests, callers, startPages, TOKENS } from "./browser.ts";

const WEBHOOKS = {
  token: TOKENS.webhook,
  mappings: { deploy: { match: { "body.kind": "deploy" }, message: "Deploy of {body.service}" } },
};
const BUILD = "/console/webhooks?tab=try&build=1";

/** Opens a value of the payload, and presses one of its buttons. */
async function pick(page: Page, place: string, action: string): Promise<void> {
  const actions = page.getByRole("group", { name: place, exact: true });
  if (!(await actions.isVisible())) await page.getByTitle(place, { exact: true }).click();
  await actions.getByRole("button", { name: action }).click();
}

function blockIn(page: Page) {
  return page.getByRole("region", { name: "Configuration" }).locator("code").last();
}

browserTests(({ open }) => {
  describe("a mapping that is built on the page", () => {
    it("MUST be built by clicks on a recorded payload, tried on it and on recorded requests, and survive a reload", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      const { hook, stranger } = callers(gateway);
      await hook("/hooks/agent", { message: "hi" });
      await hook("/hooks/deploy", { status: "firing", title: "Disk full", nested: { level: 3 } });
      await hook("/hooks/deploy", { status: "resolved", title: "Disk full" });
      await stranger("/hooks/deploy", { status: "firing" });
      const { deliveryId } = await hook("/hooks/deploy", { status: "firing", title: "CPU hot", nested: { level: 3 } });
      await using page = await open(gateway, { path: `${BUILD}&delivery=${deliveryId}` });
      await pick(page, "body.status", "Match this value");
      await pick(page, "body.nested.level", "Match this value");
      await pick(page, "body.title", "Use in the message");
      await pick(page, "body.status", "Session for each value");
      await pick(page, "body.title", "One turn for a burst");
      expect(await page.getByLabel("Message").inputValue()).toBe("{body.title}");
      await page.getByText("new-mapping would start a turn.").waitFor();
      await page.getByText("CPU hot").first().waitFor();
      await page.getByText("Would have matched 2 of 4").waitFor();
      await page.getByText("1 without a stored JSON body").waitFor();
      await page.getByText("2 requests without a match").click();
      await page.getByRole("table", { name: "Requests that do not match" }).getByText('"resolved"').waitFor();
      await page.reload();
      await page.getByText("Would have matched 2 of 4").waitFor();
      expect(await page.getByLabel("Session").inputValue()).toBe("webhook:new-mapping:{body.status}");
      expect(await page.getByLabel("Key", { exact: true }).inputValue()).toBe("{body.title}");
      await page.getByText("starts a turn that waits 30 s for more requests, at most 5 min").waitFor();
      const list = page.getByRole("region", { name: "Back-test" }).getByRole("listitem");
      expect(await list.getByRole("link").count()).toBe(2);
      await list.getByRole("link").first().click();
      await page.getByRole("heading", { name: "Activity" }).waitFor();
      expect(page.url()).toContain(String(deliveryId));
    });

    it("MUST be copied as a block that the configuration accepts and that matches the webhook", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      const { hook } = callers(gateway);
      const body = { status: `"fi'ring" $\u007bHOME} \\ {x}`, title: "Disk full", list: [{ "a-b": true }] };
      const { deliveryId } = await hook("/hooks/deploy", body);
      await using page = await open(gateway, { path: `${BUILD}&delivery=${deliveryId}` });
      await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
      await page.getByLabel("Name").fill("incident");
      await pick(page, "body.status", "Match this value");
      await pick(page, "body.list.0.a-b", "Match this value");
      await pick(page, "body.title", "Use in the message");
      await pick(page, "body.title", "One turn for a burst");
      await page.getByLabel("Wait after the last request").fill("10s");
      await page.getByLabel("Text of the turn").selectOption("all");
      await page.getByText("Would have matched 1 of 1").waitFor();
      await page.getByText("of gateway.json5").waitFor();
      await page.getByRole("button", { name: "Copy the mapping" }).click();
      const block = String(await page.evaluate("navigator.clipboard.readText()"));
      const file = join(gateway.folder, "gateway.json5");
      const text = readFileSync(file, "utf8");
      writeFileSync(
        file,
        text.replace(/"mappings":\s*\{/, (start) => `${start}\n${block}\n`),
      );
      await expect.poll(async () => (await hook("/hooks", body)).mapping, { interval: 100 }).toBe("incident");
      expect(await hook("/hooks", body)).toMatchObject({ mapping: "incident", coalesced: true });
    });

    it("MUST be built with only the keyboard", async () => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      const { deliveryId } = await callers(gateway).hook("/hooks/deploy", { status: "firing", title: "Disk full" });
      await using page = await open(gateway, { path: `${BUILD}&delivery=${deliveryId}` });
      await page.getByTitle("body.status", { exact: true }).focus();
      for (const key of ["Enter", "Tab", "Enter", "Tab", "Enter"]) await page.keyboard.press(key);
      expect(await page.getByLabel("Message").inputValue()).toBe("{body.status}");
      expect(await page.getByLabel("Value of condition 1").inputValue()).toBe("firing");
      await page.getByRole("button", { name: "Add a condition" }).press("Enter");
      await page.getByLabel("Path of condition 2").fill("body.title");
      await page.getByLabel("Value of condition 2").fill("CPU hot");
      await page.getByText("Would have matched 0 of 1").waitFor();
      await page.getByRole("button", { name: "Remove condition 2" }).press("Enter");
      await page.getByText("Would have matched 1 of 1").waitFor();
      await page.getByLabel("Message").fill("{title}");
      await page.getByText("which is not a placeholder").waitFor();
      expect(await blockIn(page).count()).toBe(0);
      await page.getByRole("button", { name: "Clear the draft" }).press("Enter");
      await page.getByText("Write a message, or pick a value for it.").waitFor();
    });

    it("MUST accept a pasted payload, show hostile text as text, and explain why a value cannot be used", async () => {
      await using gateway = await startPages({ webhooks: { token: TOKENS.webhook } });
      const hostile = `{"__proto__":{"a":1},"a.b":"dot","":"empty","list":[[{"x[0]":"bracket"}]],"password":"[hidden]",
        "bidi\u202e":"gnp\u202e.exe","<img src=x>":"<script>window.ran=1</script>","nothing":null,
        "huge":"${"x".repeat(100_000)}","many":[${Array.from({ length: 3_000 }, (_, n) => n).join()}]}`;
      await using page = await open(gateway, { path: BUILD, viewport: { width: 360, height: 740 } });
      await page.getByLabel("Payload").fill(hostile);
      await page.getByRole("button", { name: "Pick values" }).waitFor();
      const whyNot = async (place: string, action = "Match this value") => {
        await page.getByTitle(place, { exact: true }).click();
        const button = page.getByRole("group", { name: place, exact: true }).getByRole("button", { name: action });
        expect(await button.getAttribute("aria-disabled")).toBe("true");
        return button.getAttribute("title");
      };
      await page.getByRole("button", { name: /__proto__/ }).waitFor();
      expect(await whyNot("body.__proto__.a")).toContain("never read");
      expect(await whyNot("body.a.b")).toContain("dot");
      expect(await whyNot("body.")).toContain("empty step");
      expect(await whyNot("body.password")).toContain("hides");
      expect(await whyNot("body.nothing")).toContain("never matches");
      await page.getByLabel("Filter the request").fill("gnp");
      await page.getByRole("button", { name: /gnp/ }).click();
      await page.getByRole("button", { name: "Match this value" }).click();
      await page.getByLabel("Filter the request").fill("script");
      await page.getByRole("button", { name: /<script>/ }).click();
      await page.getByRole("group", { name: "body.<img src=x>" }).getByRole("button", { name: "Use in the" }).click();
      await page.getByText("new-mapping would start a turn.").waitFor();
      expect(await blockIn(page).textContent()).toContain(String.raw`"body.bidi\u202e": "gnp\u202e.exe"`);
      expect(await page.evaluate("window.ran")).toBeUndefined();
      expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
    });

    it("MUST offer only conditions that the gateway accepts: no long values or paths, no numbers that JSON cannot hold, keys with a brace", async () => {
      await using gateway = await startPages({ webhooks: { token: TOKENS.webhook } });
      await using page = await open(gateway, { path: BUILD });
      const long = "k".repeat(600);
      const body = `{"${long}":"a","value":"${"v".repeat(1_025)}","huge":1e400,"a}b":"braced","c":"d"}`;
      await page.getByLabel("Payload").fill(body);
      const buttonOf = async (place: string, action: string) => {
        const actions = page.getByRole("group", { name: place, exact: true });
        if (!(await actions.isVisible())) await page.getByTitle(place, { exact: true }).click();
        return actions.getByRole("button", { name: action });
      };
      const whyNot = async (place: string, action: string) => (await buttonOf(place, action)).getAttribute("title");
      expect(await whyNot(`body.${long}`, "Match this value")).toContain("512 characters");
      expect(await whyNot("body.value", "Match this value")).toContain("1024 characters");
      for (const action of ["Match this value", "Use in the message", "Session for each value", "One turn for a burst"])
        expect(await whyNot("body.huge", action)).toContain("a number of this size");
      expect(await whyNot("body.a}b", "Use in the message")).toContain("template");
      await (await buttonOf("body.a}b", "Match this value")).click();
      await page.getByLabel("Message").fill("Hello {body.c}");
      await page.getByText("new-mapping would start a turn.").waitFor();
      expect(await blockIn(page).textContent()).toContain('"body.a}b": "braced"');
    });

    it("MUST not store values from places that are named like a secret", async () => {
      await using gateway = await startPages({ webhooks: { token: TOKENS.webhook } });
      await using page = await open(gateway, { path: BUILD });
      await page.getByLabel("Payload").fill('{"password":"sekrit","kind":"deploy"}');
      await pick(page, "body.password", "Match this value");
      await pick(page, "body.kind", "Match this value");
      const stored = await page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])");
      expect(stored).toContain("deploy");
      expect(stored).not.toContain("sekrit");
    });

    it.each(["light", "dark"] as const)("MUST have no serious axe violations: %s", async (colorScheme) => {
      await using gateway = await startPages({ webhooks: WEBHOOKS });
      const { hook } = callers(gateway);
      await hook("/hooks/deploy", { status: "resolved" });
      const { deliveryId } = await hook("/hooks/deploy", { status: "firing", title: "Disk full" });
      for (const width of [1280, 360]) {
        const path = `${BUILD}&delivery=${deliveryId}`;
        await using page = await open(gateway, { path, colorScheme, viewport: { width, height: 740 } });
        await pick(page, "body.status", "Match this value");
        await pick(page, "body.title", "Use in the message");
        await page.getByText("Would have matched 1 of 2").waitFor();
        await page.getByText("1 request without a match").click();
        await page.getByText("Bursts").click();
        await page.getByText("Agent, model and reply").click();
        expect(await faultsOf(page, colorScheme)).toEqual([]);
        expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
      }
    });
  });
});
