import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { faultsOf } from "./axe.ts";
import { browserTests, codeFor, startPages, TOKENS } from "./browser.ts";

const READER = "rpc-token-that-only-reads-12";
const HEALTH = "rpc-token-that-opens-nothing";
const EXPIRED = "admin-key-that-was-good-once";

const config = {
  gateway: {
    rest: {
      auth: {
        keys: [
          { name: "ops", key: TOKENS.admin, scopes: ["admin"] },
          { name: "laptop", key: EXPIRED, scopes: ["admin"], expiresAt: "2026-11-01" },
        ],
      },
    },
    rpc: {
      auth: {
        tokens: [
          { name: "ops", token: TOKENS.rpc, permissions: "*" },
          { name: "dashboard", token: READER, permissions: ["agent.list", "session.list", "session.get"] },
          { name: "probe", token: HEALTH, permissions: ["system.health"] },
        ],
      },
    },
    console: { token: TOKENS.console },
    defaultAgent: "main",
  },
};

async function enter(page: Page, token: string): Promise<void> {
  await page.getByLabel("Console token").fill(token);
  await page.getByLabel("Console token").press("Enter");
}

browserTests(({ open }) => {
  describe("a role", () => {
    it("MUST be refused by name if it expired or has no permissions, and cause no other refusal", async () => {
      await using gateway = await startPages(config);
      await using page = await open(gateway, { token: "" });
      await enter(page, EXPIRED);
      await page.getByText("The key laptop expired on 1 Nov 2026.").waitFor();
      await enter(page, HEALTH);
      await page.getByText("The RPC token probe has no permission for the console.").waitFor();
      const headers = { authorization: `Bearer ${TOKENS.console}` };
      const answer = await fetch(`${gateway.url}/api/v1/deliveries`, { headers });
      const { deliveries } = (await answer.json()) as { deliveries: { path: string; outcome: string }[] };
      // The refusal of the expired key only.
      expect(deliveries.map(({ path, outcome }) => [path, outcome])).toEqual([["/api/v1/identity", "refused"]]);
    });

    it("MUST be an RPC token with exactly its permissions, which causes no refusal", async () => {
      await using gateway = await startPages(config);
      const headers = { authorization: `Bearer ${TOKENS.rpc}`, "content-type": "application/json" };
      const params = { agentName: "main", message: "Hello", wait: true };
      const sent = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "agent.sendMessage", params });
      await fetch(`${gateway.url}/rpc`, { method: "POST", headers, body: sent });
      await using page = await open(gateway, { token: "" });
      await enter(page, READER);
      // The start page needs REST.
      await page.getByRole("heading", { name: "Agents", level: 1 }).waitFor();
      await page.getByText("Signed in with the RPC token dashboard").waitFor();
      await page.locator("tbody").getByText("main").waitFor();
      for (const name of ["Activity", "Webhooks", "Usage"]) {
        await page.getByRole("navigation", { name: "Pages", exact: true }).getByRole("link", { name }).click();
        await page.getByRole("heading", { name, level: 1 }).waitFor();
        await page
          .locator("#page .note")
          .getByText(name === "Usage" ? "Needs the permission usage.stats." : "RPC tokens can't use this.")
          .waitFor();
      }
      await page.goto(`${gateway.url}/console/sessions`);
      await page.locator("tbody a").first().click();
      await page.getByText("Hello").first().waitFor();
      await page.reload();
      await page.getByText("Hello").first().waitFor();
      const reasons = async () =>
        await page
          .locator("#page button[aria-disabled='true']")
          .evaluateAll((all) => all.map((one) => one.getAttribute("title")));
      await expect.poll(reasons).toContain("Needs the permission session.delete.");
      expect(await reasons()).toContain("Needs the permission agent.sendMessage.");
      const all = { authorization: `Bearer ${TOKENS.console}` };
      const answer = await fetch(`${gateway.url}/api/v1/deliveries?outcome=refused`, { headers: all });
      expect(((await answer.json()) as { deliveries: object[] }).deliveries).toEqual([]);
    });
  });

  describe("the tabs of a browser", () => {
    async function signedIn(gateway: { url: string }) {
      const page = await open(gateway, { path: "/console/agents" });
      await page.getByRole("heading", { name: "Agents", level: 1 }).waitFor();
      return page;
    }
    const stored = (page: Page) => page.evaluate("JSON.stringify({ ...localStorage, ...sessionStorage })");

    it("MUST share the token of a signed-in tab, and store it nowhere else", async () => {
      await using gateway = await startPages();
      await using first = await signedIn(gateway);
      const second = await first.context().newPage();
      await second.goto(`${gateway.url}/console/settings`);
      await second.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
      expect(await second.evaluate("document.cookie")).toBe("");
      expect(await second.evaluate("JSON.stringify({ ...localStorage })")).not.toContain(TOKENS.console);
      // The theme follows.
      await first.keyboard.press("t");
      await expect.poll(() => second.evaluate("document.documentElement.dataset.theme")).toBe("light");
      // It is signed in with the last tab closed, too, and a tab after the last asks.
      await first.goto("about:blank");
      await second.reload();
      await second.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
      await second.goto("about:blank");
      const third = await first.context().newPage();
      await third.goto(`${gateway.url}/console`);
      await third.getByRole("heading", { name: "Sign in", exact: true }).waitFor();
    });

    it("MUST sign in a new tab also if the others are busy when it asks", async () => {
      await using gateway = await startPages();
      await using first = await signedIn(gateway);
      const second = await first.context().newPage();
      const busy = first.evaluate("const end = performance.now() + 3_000; while (performance.now() < end);");
      await second.goto(`${gateway.url}/console/settings`);
      await second.getByRole("heading", { name: "Settings", level: 1 }).waitFor();
      await busy;
    });

    it("MUST sign out together, also a tab that shows another site meanwhile", async () => {
      await using gateway = await startPages();
      await using first = await signedIn(gateway);
      const [second, away] = [await first.context().newPage(), await first.context().newPage()];
      for (const page of [second, away]) {
        await page.goto(`${gateway.url}/console/agents`);
        await page.getByRole("heading", { name: "Agents", level: 1 }).waitFor();
      }
      await away.goto("about:blank");
      await second.getByRole("button", { name: "Sign out" }).first().click();
      await first.getByText("You signed out in another tab.").waitFor();
      await away.goBack();
      await away.getByText("You signed out in another tab.").waitFor();
      for (const page of [first, second, away]) expect(await stored(page)).not.toContain(TOKENS.console);
      // A new sign-in is not undone by the earlier sign-out.
      await enter(first, TOKENS.console);
      await first.getByRole("heading", { name: "Agents", level: 1 }).waitFor();
      await first.reload();
      await first.getByRole("heading", { name: "Agents", level: 1 }).waitFor();
    });

    it("MUST NOT sign in a tab that was opening during a sign-out, and MUST show no reason in a tab opened later", async () => {
      await using gateway = await startPages();
      await using first = await signedIn(gateway);
      const reloaded = await first.context().newPage();
      await reloaded.goto(`${gateway.url}/console/agents`);
      await reloaded.getByRole("heading", { name: "Agents", level: 1 }).waitFor();
      const opening = await first.context().newPage();
      let release = () => {};
      const held = new Promise<void>((resolve) => (release = resolve));
      let asked = 0;
      for (const page of [reloaded, opening])
        await page.route("**/api/v1/identity", async (route) => {
          asked++;
          await held;
          await route.continue();
        });
      await Promise.all([reloaded.reload(), opening.goto(`${gateway.url}/console/agents`)]);
      await expect.poll(() => asked).toBe(2);
      await first.getByRole("button", { name: "Sign out" }).first().click();
      release();
      for (const page of [reloaded, opening]) {
        await page.getByText("You signed out in another tab.").waitFor();
        expect(await stored(page)).not.toContain(TOKENS.console);
      }
      const fresh = await first.context().newPage();
      await fresh.goto(`${gateway.url}/console`);
      await fresh.getByRole("heading", { name: "Sign in", exact: true }).waitFor();
      expect(await fresh.locator(".note").count()).toBe(0);
    });

    it("MUST ask which identity signs in a new tab if the others have two", async () => {
      await using gateway = await startPages();
      await using first = await signedIn(gateway);
      const second = await first.context().newPage();
      await second.goto(`${gateway.url}/console/agents#code=${await codeFor(gateway.url, TOKENS.admin)}`);
      await second.getByRole("button", { name: "Switch" }).click();
      await second.getByText("Signed in with the API key ops").waitFor();
      const third = await first.context().newPage();
      await third.goto(`${gateway.url}/console/agents`);
      await third.getByRole("heading", { name: "Choose an identity" }).waitFor();
      expect(await third.evaluate("sessionStorage.length")).toBe(0);
      expect(await faultsOf(third, "light")).toEqual([]);
      await third.getByRole("button", { name: "Sign in with the API key ops" }).click();
      await third.getByText("Signed in with the API key ops").waitFor();
      // A sign-out ends the question, too.
      const fourth = await first.context().newPage();
      await fourth.goto(`${gateway.url}/console/agents`);
      await fourth.getByRole("heading", { name: "Choose an identity" }).waitFor();
      await first.getByRole("button", { name: "Sign out" }).first().click();
      await fourth.getByText("You signed out in another tab.").waitFor();
    });

    it("MUST NOT be signed out by a tab whose token is refused", async () => {
      await using gateway = await startPages();
      await using first = await signedIn(gateway);
      const second = await first.context().newPage();
      await second.goto(`${gateway.url}/docs`);
      await second.evaluate('sessionStorage.setItem("agent-gateway.token", "a-token-of-nobody")');
      await second.goto(`${gateway.url}/console`);
      await second.getByText("Unknown token.").waitFor();
      await first.reload();
      await first.getByRole("heading", { name: "Agents", level: 1 }).waitFor();
    });

    it("MUST NOT react to more than a question, answer with an identity that was only offered, or fail on garbage", async () => {
      await using gateway = await startPages();
      await using first = await open(gateway, { token: "" });
      await first.getByRole("heading", { name: "Sign in", exact: true }).waitFor();
      const page = await first.context().newPage();
      await page.goto(`${gateway.url}/docs`);
      await page.evaluate(`(() => {
        window.heard = [];
        window.channel = new BroadcastChannel("agent-gateway");
        channel.onmessage = ({ data }) => heard.push(data);
        const garbage = [null, 7, "ask", {}, { ask: 7 }, { ask: { toString: 1 } }, { answer: "x", token: "${TOKENS.console}" }];
        for (const one of garbage) channel.postMessage(one);
        channel.postMessage({ ask: "one" });
      })()`);
      const code = await (
        await fetch(`${gateway.url}/api/v1/console/codes`, {
          method: "POST",
          headers: { authorization: `Bearer ${TOKENS.admin}` },
        })
      ).json();
      await first.evaluate(`location.hash = "#code=${(code as { code: string }).code}"`);
      await first.getByRole("heading", { name: "Sign in as ops?" }).waitFor();
      await page.evaluate('channel.postMessage({ ask: "two" })');
      await first.getByRole("button", { name: "Sign in as ops" }).click();
      await first.getByText("Signed in with the API key ops").waitFor();
      await page.evaluate('channel.postMessage({ ask: "three" })');
      const heard = () => page.evaluate("JSON.stringify(heard.filter((one) => one.answer))");
      await expect.poll(heard).toContain("three");
      expect(JSON.parse(String(await heard()))).toEqual([{ answer: "three", token: TOKENS.admin }]);
    });
  });
});
