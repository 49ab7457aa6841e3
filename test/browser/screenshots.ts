import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { codeFor, TOKENS } from "./browser.ts";
import { createSeed } from "./seed.ts";
import { filmTail, startWriters } from "./tail-picture.ts";

/**
 * `npm run screenshots`: every page of the console, light and dark, wide and 360 px, from a gateway with a morning's work, and the view Tail as an
 * animation. With `-- tail`, only the animation.
 */
const OUT = "docs/images";
const SIZES = { wide: { width: 1280, height: 800 }, narrow: { width: 360, height: 740 } } as const;

type Picture = { name: string; path: string; act?: readonly string[] };

async function picturesOf(url: string): Promise<Picture[]> {
  const ask = async (path: string) =>
    (await (
      await fetch(`${url}/api/v1${path}`, { headers: { authorization: `Bearer ${TOKENS.console}` } })
    ).json()) as {
      deliveries: { delivery_id: string; session_id: string | null }[];
    };
  const { deliveries } = await ask("/deliveries?mapping=github-push&outcome=completed");
  const push = deliveries[0]?.delivery_id ?? "";
  return [
    { name: "live", path: "/console" },
    { name: "activity", path: "/console/activity" },
    { name: "delivery", path: `/console/d/${push}` },
    { name: "events", path: "/console/events" },
    { name: "agents", path: "/console/agents/support" },
    { name: "sessions", path: `/console/s/${encodeURIComponent("agent:support:rest:ada")}` },
    { name: "skills", path: "/console/skills/summarise-incident" },
    { name: "webhooks", path: "/console/webhooks/github-push" },
    { name: "usage", path: "/console/usage" },
    { name: "settings", path: "/console/settings" },
    { name: "api", path: "/console/api" },
  ];
}

async function main(): Promise<void> {
  if (process.argv[2] !== "tail")
    await fromSeed(
      (seed) => seed.config,
      async (seed, url) => {
        await seed.fill({ url });
        await take(url);
      },
    );
  const writers = await startWriters();
  try {
    await fromSeed(
      (seed) => writtenBy(seed.config, writers.url),
      (_, url) => takeTail(url),
    );
  } finally {
    writers.close();
  }
}

type Seed = Awaited<ReturnType<typeof createSeed>>;

/** The configuration with other agents under the same names, which have no heartbeat. */
function writtenBy(config: Seed["config"], url: string) {
  const agents = Object.keys(config.agents).map((name) => [name, { backend: "http", http: { url } }]);
  return { ...config, agents: Object.fromEntries(agents) };
}

/** Runs a gateway during a function. */
async function fromSeed(
  configOf: (seed: Seed) => Pick<Seed["config"], "gateway">,
  act: (seed: Seed, url: string) => Promise<void>,
): Promise<void> {
  await using seed = await createSeed();
  const config = configOf(seed);
  const folder = mkdtempSync(join(tmpdir(), "gateway-pictures-"));
  writeFileSync(
    join(folder, "gateway.json5"),
    JSON.stringify({ ...config, gateway: { ...config.gateway, port: 18_790 } }),
  );
  const child = spawn(process.execPath, [join(process.cwd(), "dist/main.js")], {
    cwd: folder,
    stdio: "ignore",
    env: { PATH: process.env.PATH },
  });
  const url = "http://127.0.0.1:18790";
  try {
    for (let n = 0; n < 100; n++) {
      const isReady = await fetch(`${url}/readyz`)
        .then(({ ok }) => ok)
        .catch(() => false);
      if (isReady) break;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await act(seed, url);
  } finally {
    child.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

function launch() {
  mkdirSync(OUT, { recursive: true });
  return chromium.launch({
    executablePath: "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
  });
}

async function takeTail(url: string): Promise<void> {
  const browser = await launch();
  const file = join(OUT, "tail.webp");
  const bytes = await filmTail(browser, url);
  writeFileSync(file, bytes);
  await browser.close();
  console.log(`${file} ${(bytes.length / 1024).toFixed(0)} kB`);
}

async function take(url: string): Promise<void> {
  const browser = await launch();
  let all = 0;
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ["light", "dark"] as const) {
      const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
      const page = await context.newPage();
      const devtools = await context.newCDPSession(page);
      await page.goto(`${url}/console#code=${await codeFor(url, TOKENS.console)}`);
      // A page that is left before its code was exchanged is not signed in.
      await page.getByRole("heading", { name: "Live" }).waitFor();
      for (const { name, path } of await picturesOf(url)) {
        await page.goto(url + path);
        await page.waitForTimeout(1_200);
        const file = join(OUT, `${name}-${size}-${colorScheme}.webp`);
        const { data } = await devtools.send("Page.captureScreenshot", { format: "webp", quality: 82 });
        writeFileSync(file, Buffer.from(data, "base64"));
        all += statSync(file).size;
        console.log(file);
      }
      await context.close();
    }
  }
  await browser.close();
  console.log(`${(all / 1024 ** 2).toFixed(2)} MB`);
}

await main();
