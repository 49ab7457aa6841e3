import type { Page } from "playwright-core";
import { expect, it } from "vitest";
import { browserTests, callers, startPages, TOKENS } from "./browser.ts";

/** Text that must never be anything but text. */
const HOSTILE =
  '<img src=x onerror="window.ran=1"><script>window.ran=1</script>[a](javascript:window.ran=1)\u202e\u001b[31m\u009b31m';

/** Texts of the page, and of its attributes, with an unescaped control character. */
const STEERED = `JSON.stringify([document.title, ...document.body.querySelectorAll("*")].flatMap((one) => typeof one === "string"
  ? one : [...[...one.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data), one.title, one.getAttribute("aria-label") ?? ""])
  .filter((text) => /[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]/.test(text)).map((text) => text.slice(0, 200)))`;

async function faultsOf(page: Page): Promise<string[]> {
  const found: string[] = [];
  if ((await page.evaluate("window.ran")) !== undefined) found.push(`${page.url()}: it ran`);
  if ((await page.locator("#page :is(img, script, iframe), #page a[href^='javascript']").count()) > 0)
    found.push(`${page.url()}: it became an element`);
  if ((await page.evaluate(STEERED)) !== "[]")
    found.push(`${page.url()}: ${await page.evaluate(STEERED)} shows control characters`);
  const over = (await page.evaluate("document.documentElement.scrollWidth - innerWidth")) as number;
  if (over > 0) found.push(`${page.url()}: ${over} px too wide`);
  return found;
}

browserTests(({ open }) => {
  it("MUST show text from outside as text, in any place", { timeout: 120_000 }, async () => {
    await using gateway = await startPages({
      agents: { main: { backend: "echo", description: HOSTILE } },
      webhooks: {
        token: TOKENS.webhook,
        mappings: { hostile: { match: { "body.kind": HOSTILE }, message: `${HOSTILE} {body.text}` } },
      },
    });
    const { rest, hook } = callers(gateway);
    // A line of a MiB, minus the rest of its request.
    await rest("/api/v1/chat/send", { message: `${HOSTILE}${"x".repeat(1_000_000)}`, user_id: "long" });
    await rest("/api/v1/chat/send", { message: `invoice_\u202egnp.exe *and* ${HOSTILE}`, user_id: "short" });
    const { deliveryId } = await hook(
      "/hooks/hostile",
      { kind: HOSTILE, text: HOSTILE, [HOSTILE]: HOSTILE },
      { "x-note": "<img src=x onerror=window.ran=1>\x9b31m", "user-agent": "<script>window.ran=1</script>" },
    );
    const { eventId } = await hook("/hooks/wake", { text: HOSTILE, metadata: { [HOSTILE]: HOSTILE } });
    const faults: string[] = [];
    for (const width of [1280, 360]) {
      await using page = await open(gateway, { viewport: { width, height: 800 } });
      const look = async (path: string, text: string | RegExp = "<img src=x") => {
        await page.goto(`${gateway.url}/console/${path}`);
        await page.getByText(text).filter({ visible: true }).first().waitFor();
        faults.push(...(await faultsOf(page)));
      };
      await look("agents/main");
      await look("webhooks/hostile");
      await look("events");
      await look(`e/${eventId}`);
      for (const tab of ["timeline", "request", "reply"]) await look(`d/${deliveryId}?tab=${tab}`);
      await look("settings/configuration");
      await look("s/agent%3Amain%3Arest%3Along", "window.ran=1");
      await look("s/agent%3Amain%3Arest%3Ashort", "⟨U+202E⟩");
    }
    expect(faults).toEqual([]);
  });
});
