import { describe, expect, it } from "vitest";
import { faultsOf } from "./axe.ts";
import { browserTests, startPages, TOKENS } from "./browser.ts";

const DESK = "rpc-token-of-the-support-desk";
const agents = {
  main: { backend: "echo", description: "Repeats each message." },
  support: { backend: "echo", description: "Answers customers." },
};
const gateway = {
  console: { token: TOKENS.console },
  defaultAgent: "main",
  rpc: {
    auth: {
      tokens: [
        {
          name: "support desk",
          token: DESK,
          permissions: "*",
          agents: ["support"],
          rateLimit: { maxRequests: 500, windowMs: 60_000 },
        },
      ],
    },
  },
};

browserTests(({ open }) => {
  describe("the limits of a key", () => {
    it("MUST be chosen in the dialog, hold, and stand in the list", async () => {
      await using pages = await startPages({ agents, gateway });
      await using page = await open(pages, { path: "/console/settings?create=1" });
      const dialog = page.getByRole("dialog");
      const create = dialog.getByRole("button", { name: /^Create/ });
      await dialog.getByLabel("Name").fill("widget");
      await dialog.getByRole("button", { name: "Selected agents" }).click();
      await expect.poll(() => create.getAttribute("title")).toBe("Select an agent first.");
      await dialog.getByRole("checkbox", { name: /support/ }).check();
      await dialog.getByLabel("Requests", { exact: true }).fill("some");
      expect(await create.getAttribute("title")).toContain("Enter a whole number of requests");
      await dialog.getByLabel("Requests", { exact: true }).fill("2");
      await dialog.getByLabel("Tokens", { exact: true }).fill("1.5");
      expect(await create.getAttribute("title")).toContain("Enter a whole number of tokens");
      await dialog.getByLabel("Tokens", { exact: true }).fill("200000");
      for (const scheme of ["light", "dark"] as const) {
        await page.emulateMedia({ colorScheme: scheme });
        expect(await faultsOf(page, scheme)).toEqual([]);
      }
      await create.click();
      await page.getByText("Limited to support · 2 per minute · 200,000 tokens per day.").waitFor();
      const key = String(await page.locator("output").textContent()).trim();
      expect(await page.locator("dialog pre code").first().textContent()).toContain('"agent":"support"');
      await page.getByRole("button", { name: "I have copied the key" }).click();
      await page.getByRole("row", { name: /widget.*support · 2 per minute/ }).waitFor();
      const send = (agent: string) =>
        fetch(`${pages.url}/api/v1/chat/send`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          body: JSON.stringify({ message: "Hello", agent }),
        });
      const statuses = [];
      for (const agent of ["support", "main", "support"]) statuses.push((await send(agent)).status);
      expect(statuses).toEqual([200, 403, 429]);
      await page.getByRole("tab", { name: "RPC tokens" }).click();
      await page.getByRole("row", { name: /support desk.*support · 500 per minute/ }).waitFor();
    });

    it("MUST NOT name agents for a key of scope admin, which reaches all of them", async () => {
      await using pages = await startPages({ agents, gateway });
      await using page = await open(pages, { path: "/console/settings?create=1" });
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Name").fill("operator");
      await dialog.getByRole("button", { name: "Selected agents" }).click();
      await dialog.getByRole("radio", { name: /Admin/ }).check();
      await dialog.getByText("an admin key reaches every agent").waitFor();
      const some = dialog.getByRole("button", { name: "Selected agents" });
      expect(await some.getAttribute("aria-disabled")).toBe("true");
      await dialog.getByRole("button", { name: "Create", exact: true }).click();
      await page.getByText("Copy the key now.").waitFor();
      expect(await page.getByText("Limited to").count()).toBe(0);
    });
  });

  it("a token that is limited to an agent sees only it, and causes no refusal", async () => {
    await using pages = await startPages({ agents, gateway });
    await using page = await open(pages, { token: "" });
    await page.getByLabel("Console token").fill(DESK);
    await page.getByLabel("Console token").press("Enter");
    await page.getByRole("heading", { name: "Agents", level: 1 }).waitFor();
    await page.locator("tbody").getByText("support").waitFor();
    expect(await page.locator("tbody tr").count()).toBe(1);
    await page.getByRole("link", { name: "support" }).first().click();
    const reload = page.getByRole("button", { name: /^Reload/ });
    await expect.poll(() => reload.first().getAttribute("title")).toContain("limited to some agents");
    for (const name of ["Sessions", "Usage"]) {
      await page.getByRole("navigation", { name: "Pages", exact: true }).getByRole("link", { name }).click();
      await page.getByRole("heading", { name, level: 1 }).waitFor();
    }
    const headers = { authorization: `Bearer ${TOKENS.console}` };
    const answer = await fetch(`${pages.url}/api/v1/deliveries?outcome=refused`, { headers });
    expect(((await answer.json()) as { deliveries: object[] }).deliveries).toEqual([]);
  });
});
