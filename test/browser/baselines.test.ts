import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pixelmatch from "pixelmatch";
import type { Page } from "playwright-core";
import { PNG } from "pngjs";
import { expect, it } from "vitest";
import { browserTests, callers, startPages, TOKENS } from "./browser.ts";
import { pages, pathOf, untilWhole } from "./pages.ts";

const FOLDER = join(import.meta.dirname, "baselines");
/** `npm run baselines` renews the pictures. */
const RENEW = process.env.BASELINES === "renew";
/** Half the size shows what moved, with small pictures. */
const SCALE = 0.5;
/** Pictures of the same page are the same to the pixel; at half the size, a control of 20 x 20 px is 36 pixels of edge. */
const MOST_DIFFERENT = 8;

const LOOKS = [
  { name: "light", colorScheme: "light", viewport: { width: 1280, height: 800 } },
  { name: "dark", colorScheme: "dark", viewport: { width: 1280, height: 800 } },
  { name: "360", colorScheme: "light", viewport: { width: 360, height: 740 } },
] as const;

/** The widths of this machine's fonts: with other fonts, no picture is the same. */
const FONTS = `["ui-sans-serif, system-ui", "ui-monospace, monospace"].map((family) => {
  const context = document.createElement("canvas").getContext("2d");
  context.font = "13px " + family;
  return Math.round(context.measureText("The quick brown fox jumps over 13 lazy dogs; dlv_01M7YN0XENG6").width * 10);
})`;

/** Replaces ids, times and durations with fixed text, and hides the charts of them, also after the page draws again. */
const MAKE_STILL = `(() => {
  const RULES = [
    [/\\b([a-z]{2,6}_|chat:|webhook:)?[0-9A-HJKMNP-TV-Z]{26}\\b/g, "$101ARZ3NDEKTSV4RRFFQ69G5FAV"],
    [/\\b([a-z]{2,4}_[0-9A-Z]{4,9})…[0-9A-Z]{4}/g, "dlv_01ARZ…5FAV"],
    [/\\b\\d{1,2}:\\d{2}(:\\d{2})?\\b/g, "12:00:00"],
    [/\\d+ ?(ms|s|min|m|h|d)\\b( \\d+ (s|m|h)\\b)?( ago)?/g, "1 s"],
    [/127\\.0\\.0\\.1:\\d+/g, "127.0.0.1:18789"],
    [/20\\d\\d-\\d\\d-\\d\\d/g, "2026-01-01"],
    [/\\b\\d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)\\b/g, "28 Nov"],
  ];
  const still = () => {
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = texts.nextNode(); node; node = texts.nextNode()) {
      let text = node.data;
      for (const [what, by] of RULES) text = text.replace(what, by);
      if (text !== node.data) node.data = text;
    }
    for (const element of document.querySelectorAll("time, .bars, .spark, .plot-bars, .meter, pre")) element.style.visibility = "hidden";
  };
  still();
  new MutationObserver(still).observe(document.body, { subtree: true, childList: true, characterData: true });
})()`;

/** The same few records in every run, one after another. */
async function fill(gateway: { url: string }): Promise<void> {
  const { rest, hook, stranger } = callers(gateway);
  await rest("/api/v1/chat/send", { message: "Where is order 4711?", user_id: "ada" });
  await hook("/hooks/deploy", { kind: "deploy", service: "billing" });
  await hook("/hooks/deploy", { kind: "rollback", service: "billing" });
  await hook("/hooks/wake", { text: "The nightly build is green." });
  await stranger("/hooks/wake", { text: "Let me in" });
}

async function take(page: Page): Promise<PNG> {
  await page.evaluate(MAKE_STILL);
  return PNG.sync.read(await page.screenshot({ animations: "disabled", caret: "hide" }));
}

/** The number of different pixels; all of them if the sizes differ. */
function differenceOf(before: PNG, after: PNG, diff: PNG): number {
  const { width, height } = before;
  if (width !== after.width || height !== after.height) return width * height;
  return pixelmatch(before.data, after.data, diff.data, width, height, { threshold: 0.05 });
}

function judge(name: string, after: PNG): string | undefined {
  const file = join(FOLDER, `${name}.png`);
  if (RENEW) {
    writeFileSync(file, PNG.sync.write(after));
    return undefined;
  }
  const before = PNG.sync.read(readFileSync(file));
  const diff = new PNG({ width: before.width, height: before.height });
  const different = differenceOf(before, after, diff);
  if (different <= MOST_DIFFERENT) return undefined;
  const out = join(tmpdir(), "console-baselines");
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, `${name}.png`), PNG.sync.write(after));
  writeFileSync(join(out, `${name}-difference.png`), PNG.sync.write(diff));
  return `${name}: ${different} pixels differ; see ${out}. If it should look so: npm run baselines`;
}

browserTests(({ open }) => {
  it("every page looks like its baseline, in both themes and at 360 px", { timeout: 240_000 }, async ({ skip }) => {
    await using gateway = await startPages({
      webhooks: {
        token: TOKENS.webhook,
        // Longer than all pictures take.
        rateLimit: { maxRequests: 100, windowMs: 3_600_000 },
        mappings: { deploy: { match: { "body.kind": "deploy" }, message: "{body.service} is out" } },
      },
    });
    await fill(gateway);
    const faults: string[] = [];
    for (const { name: look, ...how } of LOOKS) {
      await using page = await open(gateway, { ...how, deviceScaleFactor: SCALE, reducedMotion: "reduce" });
      // On a busy machine the event loop is blocked, and the page reports it.
      await page.route("**/readyz", (route) => route.fulfill({ json: { ready: true, parts: {} } }));
      const fonts = JSON.stringify(await page.evaluate(FONTS));
      const known = join(FOLDER, "fonts.json");
      if (RENEW) {
        mkdirSync(FOLDER, { recursive: true });
        // In the form of the formatter.
        writeFileSync(known, `${fonts.replace(",", ", ")}\n`);
      } else if (!existsSync(known) || JSON.stringify(JSON.parse(readFileSync(known, "utf8"))) !== fonts) {
        skip("The fonts of this machine are not those of the baselines, so that no picture can be compared.");
      }
      for (const name of pages) {
        await page.goto(gateway.url + pathOf(name));
        await untilWhole(page, name);
        await page.waitForLoadState("networkidle");
        faults.push(
          ...[judge(`${name.toLowerCase()}-${look}`, await take(page))].filter((fault) => fault !== undefined),
        );
      }
    }
    expect(faults).toEqual([]);
  });

  it("a control of 20 x 20 px that is added or missing changes the picture", { timeout: 60_000 }, async () => {
    await using gateway = await startPages();
    for (const { name: look, ...how } of LOOKS) {
      await using page = await open(gateway, { ...how, deviceScaleFactor: SCALE, reducedMotion: "reduce" });
      await page.goto(gateway.url + pathOf("Webhooks"));
      await untilWhole(page, "Webhooks");
      await page.waitForLoadState("networkidle");
      const before = await take(page);
      await page.evaluate(`(() => {
        const button = document.createElement("button");
        button.className = "button";
        button.style.cssText = "position: fixed; left: 50%; top: 60%; width: 20px; height: 20px; min-height: 0; padding: 0";
        document.body.append(button);
      })()`);
      const diff = new PNG({ width: before.width, height: before.height });
      expect(differenceOf(before, await take(page), diff), look).toBeGreaterThan(MOST_DIFFERENT);
    }
  });
});
