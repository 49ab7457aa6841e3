import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { browserTests, callers, codeFor, startPages, TOKENS, untilLive } from "./browser.ts";

browserTests(({ open }) => {
  describe("signing in to the console", () => {
    it("MUST accept the code of a link, and remove it from the address at once", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/activity" });
      await page.getByRole("heading", { name: "Activity" }).waitFor();
      expect(page.url()).toBe(`${gateway.url}/console/activity`);
      expect(await page.evaluate("document.cookie")).toBe("");
      expect(await page.evaluate("JSON.stringify({ ...localStorage })")).not.toContain(TOKENS.console);
      // The tab stores it over a reload.
      await page.reload();
      await page.getByRole("heading", { name: "Activity" }).waitFor();
      // Going back leads to no address with the code.
      expect(await page.evaluate("history.length")).toBeLessThanOrEqual(2);
    });

    it("MUST refuse a wrong token with a reason, and a key of scope chat with another reason", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { token: "" });
      const field = page.getByLabel("Console token");
      await field.fill("a-wrong-token");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByText("Unknown token.").waitFor();
      await field.fill(TOKENS.chat);
      await field.press("Enter");
      await page.getByText("The API key ci has the scope chat.").waitFor();
      expect(await page.getByRole("alert").textContent()).not.toContain("`");
      await field.fill(TOKENS.console);
      await field.press("Enter");
      await page.getByRole("heading", { name: "Live" }).waitFor();
      await page.getByRole("button", { name: "Sign out" }).first().click();
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      expect(await page.evaluate("sessionStorage.length")).toBe(0);
    });

    it("MUST accept a token with punctuation, and describe the error in text that is not a token", async () => {
      const token = "Ab+c/d==Ab+c/d==Ab+c/d==";
      await using gateway = await startPages({
        gateway: { console: { token } },
        webhooks: { enabled: false },
      });
      await using page = await open(gateway, { token });
      await untilLive(page);
      await page.getByRole("button", { name: "Sign out" }).first().click();
      const field = page.getByLabel("Console token");
      await field.fill("to\u2014ken of two words");
      await field.press("Enter");
      await page.getByText("Invalid token:").waitFor();
    });

    it("MUST refuse a used code, an invalid code and a token in a link, each with the next step", async () => {
      await using gateway = await startPages();
      const code = await codeFor(gateway.url, TOKENS.console);
      await using first = await open(gateway, { path: `/console#code=${code}`, token: "" });
      await first.getByRole("heading", { name: "Live" }).waitFor();
      await using page = await open(gateway, { path: `/console#code=${code}`, token: "" });
      await page.locator(".note", { hasText: "Its code was used, is older than a minute" }).waitFor();
      expect(page.url()).toBe(`${gateway.url}/console`);
      await page.goto(`${gateway.url}/console#code=%E2%80%94`);
      await page.locator(".note", { hasText: "no longer works" }).waitFor();
      await page.goto(`${gateway.url}/console#token=${TOKENS.console}`);
      await page.locator(".note", { hasText: "Links with tokens are not accepted" }).waitFor();
      expect(page.url()).toBe(`${gateway.url}/console`);
      expect(await page.evaluate("sessionStorage.length")).toBe(0);
    });

    it("MUST ask, with the name, before a link of a REST key signs in a tab", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { token: "" });
      const stored = () => page.evaluate("JSON.stringify({ ...sessionStorage })");
      const follow = async (path: string) => {
        await page.goto("about:blank");
        await page.goto(`${gateway.url}${path}#code=${await codeFor(gateway.url, TOKENS.admin)}`);
        await page.getByRole("heading", { name: "Sign in as ops?" }).waitFor();
      };
      await follow("/console");
      await page.getByText("signs this tab in with the API key ops").waitFor();
      expect(page.url()).toBe(`${gateway.url}/console`);
      expect(await stored()).toBe("{}");
      // Keys that were pressed on another page answer nothing.
      for (const key of ["Enter", "Space"]) await page.keyboard.press(key);
      expect(await stored()).toBe("{}");
      await page.getByRole("button", { name: "Use another token" }).click();
      await page.getByRole("heading", { name: "Sign in", exact: true }).waitFor();
      expect(await page.evaluate("document.activeElement.name")).toBe("token");
      expect(await stored()).toBe("{}");
      // A page of another site can change the fragment of a tab, or open a window.
      await page.evaluate(`location.hash = "#code=${await codeFor(gateway.url, TOKENS.admin)}"`);
      await page.getByRole("heading", { name: "Sign in as ops?" }).waitFor();
      expect(await stored()).toBe("{}");
      await page.goto("about:blank");
      const link = `${gateway.url}/console#code=${await codeFor(gateway.url, TOKENS.admin)}`;
      const [popup] = await Promise.all([page.waitForEvent("popup"), page.evaluate(`void open("${link}")`)]);
      await popup.getByRole("heading", { name: "Sign in as ops?" }).waitFor();
      expect(await popup.evaluate("sessionStorage.length")).toBe(0);
      await popup.close();
      await follow("/console/activity");
      await page.getByRole("button", { name: "Sign in as ops" }).click();
      await page.getByRole("heading", { name: "Activity" }).waitFor();
      await page.getByText("Signed in with the API key ops").waitFor();
      expect(await page.evaluate('sessionStorage.getItem("agent-gateway.token")')).toBe(TOKENS.admin);
    });

    it("MUST ask, with both names, before a link changes the identity of a tab", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { token: TOKENS.console });
      await page.getByRole("heading", { name: "Live" }).waitFor();
      const follow = async (token: string) => {
        const code = await codeFor(gateway.url, token);
        await page.evaluate(`location.hash = "#code=${code}"`);
      };
      const dialog = page.getByRole("dialog");
      await follow(TOKENS.admin);
      await dialog.getByText("signed in with the console token").waitFor();
      await dialog.getByText("the API key ops").first().waitFor();
      await page.keyboard.press("Enter");
      await dialog.waitFor({ state: "detached" });
      const token = () => page.evaluate('sessionStorage.getItem("agent-gateway.token")');
      expect(await token()).toBe(TOKENS.console);
      await follow(TOKENS.admin);
      await dialog.getByRole("button", { name: "Switch" }).click();
      await page.getByText("Signed in with the API key ops").waitFor();
      expect(await token()).toBe(TOKENS.admin);
      // The same identity causes no question.
      await follow(TOKENS.admin);
      await expect.poll(() => page.url()).not.toContain("#");
      expect(await dialog.count()).toBe(0);
    });

    it("MUST make a client that guesses tokens wait, and accept the right token", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { token: "" });
      const field = page.getByLabel("Console token");
      for (let n = 0; n < 25; n++) await callers(gateway).stranger("/api/v1/chat/send", {});
      await field.fill("another-wrong-token");
      await field.press("Enter");
      await page.getByText(/wait \d+ s\./).waitFor();
      await field.fill(TOKENS.console);
      await field.press("Enter");
      await page.getByRole("heading", { name: "Live" }).waitFor();
    });

    it("MUST accept a REST key of scope admin, and show what it may not do", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/activity", token: TOKENS.admin });
      await page.getByText("Signed in with the API key ops").waitFor();
      await callers(gateway).rest("/api/v1/chat/send", { message: "Hello" });
      await page.getByRole("button", { name: "Refresh" }).click();
      await page.getByRole("link", { name: "completed Hello" }).waitFor();
      // Neither the code nor a reload of the page adds a refusal to the list.
      const refusals = async () =>
        await page.locator(".work > .state:first-child").filter({ hasText: "refused" }).count();
      expect(await refusals()).toBe(0);
      await page.reload();
      await page.getByRole("link", { name: "completed Hello" }).waitFor();
      expect(await refusals()).toBe(0);
    });

    it("MUST return to the same page after a token that stopped working is replaced", async () => {
      await using gateway = await startPages();
      const { key_id, key } = (await callers(gateway).console("/api/v1/keys", {
        name: "short",
        scopes: ["admin"],
      })) as {
        key_id: string;
        key: string;
      };
      await using page = await open(gateway, { path: "/console/activity?surface=hooks", token: key });
      await page.getByText("No request matches these filters.").waitFor();
      const headers = { authorization: `Bearer ${TOKENS.console}` };
      await fetch(`${gateway.url}/api/v1/keys/${key_id}`, { method: "DELETE", headers });
      await page.getByRole("button", { name: "Refresh" }).click();
      await page.getByText("The token is no longer valid.").waitFor();
      expect(page.url()).toBe(`${gateway.url}/console/activity?surface=hooks`);
      await page.getByLabel("Console token").fill(TOKENS.console);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { name: "Activity" }).waitFor();
      expect(page.url()).toBe(`${gateway.url}/console/activity?surface=hooks`);
    });

    it("MUST also leave a page without requests after the console token has changed", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/agents?x=1" });
      await untilLive(page);
      const file = join(gateway.folder, "gateway.json5");
      const next = "another-console-token-of-the-pages";
      writeFileSync(file, readFileSync(file, "utf8").replace(TOKENS.console, next));
      await page.getByText("The token is no longer valid.").waitFor();
      await page.getByLabel("Console token").fill(next);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { name: "Agents" }).waitFor();
      expect(page.url()).toBe(`${gateway.url}/console/agents?x=1`);
    });
  });
});
