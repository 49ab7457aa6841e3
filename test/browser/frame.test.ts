import { describe, expect, it } from "vitest";
import { browserTests, callers, holdRoute, startPages, TOKENS, untilLive } from "./browser.ts";
import { pages, pathOf, untilWhole } from "./pages.ts";
import { createSeed } from "./seed.ts";

browserTests(({ open }) => {
  describe("the palette", () => {
    it("MUST show the actions of this page first, with their keys and reasons", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/agents/main" });
      await page.getByRole("button", { name: "Pause" }).waitFor();
      await page.keyboard.press("/");
      const options = page.getByRole("option");
      await options.first().waitFor();
      const texts = await options.allTextContents();
      expect(texts.findIndex((text) => text.startsWith("Pause"))).toBeLessThan(
        texts.findIndex((text) => text.startsWith("Live")),
      );
      await options.filter({ hasText: "Live" }).locator("kbd", { hasText: "l" }).waitFor();
      // An action with a reason is not executed.
      const reason = options.filter({ hasText: /No events are waiting/ });
      expect(await reason.getAttribute("aria-disabled")).toBe("true");
      await page.getByRole("combobox", { name: "Search" }).fill("pause");
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").getByText("Pause the agent main?").waitFor();
      await page.keyboard.press("Escape");
      await page.keyboard.press("/");
      await page.getByRole("combobox", { name: "Search" }).fill("nothing like this");
      await page.getByText("No matches. Paste a full ID to look it up.").waitFor();
    });

    it("MUST lead to the actions of other pages, and to recently shown records", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/agents/main" });
      await page.getByRole("button", { name: "Pause" }).waitFor();
      const search = async (text: string) => {
        await page.keyboard.press("Control+k");
        await page.getByRole("combobox", { name: "Search" }).fill(text);
        await page.getByRole("option").filter({ hasText: text }).first().waitFor();
        await page.keyboard.press("Enter");
      };
      await search("Create a key");
      await page.getByRole("dialog").getByLabel("Name").waitFor();
      await page.keyboard.press("Escape");
      await search("Send a test webhook");
      await page.getByRole("dialog", { name: "Send a test webhook" }).waitFor();
      await page.keyboard.press("Escape");
      await search("Pause main");
      await page.getByRole("dialog").getByText("Pause the agent main?").waitFor();
      await page.keyboard.press("Escape");
      await page.keyboard.press("g");
      await page.keyboard.press("a");
      await page.getByRole("heading", { name: "Activity", level: 1 }).waitFor();
      await page.keyboard.press("/");
      await page.getByRole("option").filter({ hasText: "main" }).filter({ hasText: "Agents" }).click();
      await expect.poll(() => page.url()).toBe(`${gateway.url}/console/agents/main`);
    });

    it("MUST NOT do what the identity may not do", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/activity", token: TOKENS.admin });
      await page.getByRole("heading", { name: "Activity", level: 1 }).waitFor();
      await page.keyboard.press("/");
      await page.getByRole("combobox", { name: "Search" }).fill("Create a key");
      const entry = page.getByRole("option").filter({ hasText: "Only the console token" });
      await entry.waitFor();
      await page.keyboard.press("Enter");
      expect(page.url()).toBe(`${gateway.url}/console/activity`);
    });

    it("MUST say that a token may not read an ID, instead of reporting no matches", async () => {
      await using gateway = await startPages();
      const { deliveryId } = await callers(gateway).hook("/hooks/agent", { message: "Hello" });
      await using page = await open(gateway, { path: "/console/agents", token: "" });
      await page.getByLabel("Console token").fill(TOKENS.rpc);
      await page.getByLabel("Console token").press("Enter");
      await page.getByRole("heading", { name: "Agents", level: 1 }).waitFor();
      await page.keyboard.press("/");
      await page.getByRole("combobox", { name: "Search" }).fill(String(deliveryId));
      const hint = page.getByRole("dialog").getByRole("status");
      await expect.poll(() => hint.textContent()).toMatch(/^RPC tokens can't use this\. Sign in with/);
    });
  });

  describe("the frame of a page", () => {
    it("MUST name the record in the title", async () => {
      await using gateway = await startPages();
      const { turn_id } = await callers(gateway).rest("/api/v1/chat/send", { message: "Hello" });
      await using page = await open(gateway, { path: "/console/activity" });
      await expect.poll(() => page.title()).toBe("Activity · Agent Gateway");
      await page.locator("tbody a").first().click();
      await expect.poll(() => page.title()).toMatch(/^dlv_\w+….{4} · Hello · Activity$/);
      await page.goto(`${gateway.url}/console/agents/main`);
      await expect.poll(() => page.title()).toBe("main · Agents");
      await page.goto(`${gateway.url}/console/t/${turn_id}`);
      await expect.poll(() => page.title()).toMatch(/^turn_\w+….{4} · (.+ · )?Sessions$/);
    });

    it("MUST show its heading before its script has loaded", async () => {
      await using gateway = await startPages();
      await using page = await open(gateway, { path: "/console/usage" });
      await page.getByRole("heading", { name: "Usage", level: 1 }).waitFor();
      const release = await holdRoute(page, /\/console\/assets\/page/);
      await page.goto(`${gateway.url}/console/skills`);
      await page.getByRole("heading", { name: "Skills", level: 1 }).waitFor();
      await page.locator("[aria-busy='true']").waitFor();
      release();
      await page.locator("[aria-busy='true']").waitFor({ state: "detached" });
    });

    it("MUST say that the gateway cannot be reached, stop its clock, and continue automatically", async () => {
      const gateway = await startPages();
      await using page = await open(gateway, { path: "/console/agents" });
      await untilLive(page);
      const heading = page.getByRole("heading", { name: "Agents", level: 1 });
      await page.locator("tbody").getByText("main").waitFor();
      const before = await heading.boundingBox();
      await page.route(/\/readyz$/, (route) => route.abort());
      await page.routeWebSocket(/\/rpc\/ws$/, (socket) => void socket.close({ code: 4000 }));
      await page.context().setOffline(true);
      await gateway[Symbol.asyncDispose]();
      await page.getByText("Gateway unreachable · showing data from").waitFor();
      expect(await heading.boundingBox()).toEqual(before);
      expect(await page.evaluate("document.documentElement.hasAttribute('data-away')")).toBe(true);
      await page.context().setOffline(false);
    });
  });

  describe("the width of every page", () => {
    /** Columns that are shown in less than the width of their title, parts that scroll sideways, and controls off the page. */
    const FAULTS = `JSON.stringify([
      ...[...document.querySelectorAll("#page .rows thead th")].map((th) => [th.textContent, th.getBoundingClientRect()])
        .filter(([, { width }]) => width > 0 && width < 80).map(([name, { width }]) => name + " is " + width + " px wide"),
      ...[document.documentElement].map(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)
        .filter((over) => over > 0).map((over) => over + " px too wide"),
      ...[...document.querySelectorAll("#page :is(a, button, input, select, textarea, summary)")]
        .filter((one) => one.checkVisibility() && !one.closest("pre, .scroll-x, .tabs, .markdown"))
        .map((one) => [one, one.getBoundingClientRect()])
        .filter(([, { left, right, width }]) => width > 0 && (left < -1 || right > innerWidth + 1))
        .map(([one]) => one.outerHTML.slice(0, 120) + " is off the page"),
    ])`;

    // A theme changes only colours.
    it("MUST show every column and control within the width of the page, without horizontal scrolling", {
      timeout: 240_000,
    }, async () => {
      await using seed = await createSeed();
      await using gateway = await startPages(seed.config);
      await seed.fill(gateway);
      await using page = await open(gateway);
      const { deliveries } = (await (
        await fetch(`${gateway.url}/api/v1/deliveries?outcome=completed`, {
          headers: { authorization: `Bearer ${TOKENS.console}` },
        })
      ).json()) as { deliveries: { delivery_id: string }[] };
      const views = [
        ...pages.map((name) => [name, pathOf(name)] as const),
        ["Activity", `/console/d/${deliveries[0]?.delivery_id}`] as const,
        ["Sessions", `/console/s/${encodeURIComponent("agent:support:rest:ada")}`] as const,
        ["Agents", "/console/agents/support"] as const,
        ["Webhooks", "/console/webhooks/deploys"] as const,
        ["Settings", "/console/settings/tokens"] as const,
        ["Settings", "/console/settings/configuration"] as const,
      ];
      const faults: string[] = [];
      for (const [name, path] of views) {
        await page.goto(gateway.url + path);
        await untilWhole(page, name);
        // The scripts of the pages do not read the width or the theme.
        for (const colorScheme of ["light", "dark"] as const) {
          await page.emulateMedia({ colorScheme });
          for (const width of [360, 700, 820, 1024, 1150, 1440]) {
            await page.setViewportSize({ width, height: 800 });
            const found = JSON.parse(String(await page.evaluate(FAULTS))) as string[];
            faults.push(...found.map((fault) => `${path}, ${colorScheme}, ${width} px: ${fault}`));
          }
        }
      }
      expect(faults).toEqual([]);
    });
  });
});
