import { existsSync, lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildGateway } from "./builds.ts";
import { type Call, chatCall, statusCall } from "./calls.ts";
import { runProgram } from "./children.ts";
import { compare, type Figure, type Gate, measure, unmeasured } from "./figures.ts";
import { startGateway, untilAnswers } from "./gateways.ts";
import { rssOf } from "./machine.ts";
import type { BenchOptions } from "./options.ts";

const STARTS = 7;
const COMMANDS = 21;
const REST_AFTER_MS = 1_000;
const MB = 1e6;

/** P13: the time from the start of the process to its first answers, and its memory when it is warm and idle. */
async function measureStart({ short, say }: BenchOptions): Promise<Figure[]> {
  const [rpc, rest, memory]: [number[], number[], number[]] = [[], [], []];
  say(`P13: ${short ? 3 : STARTS} starts`);
  for (let start = 0; start < (short ? 3 : STARTS); start++) {
    const began = performance.now();
    await using gateway = await startGateway();
    await untilAnswered(gateway.url, statusCall());
    rpc.push(performance.now() - began);
    // Sent before the contract is compiled: such a call waits for it.
    await untilAnswered(gateway.url, chatCall(0));
    rest.push(performance.now() - began);
    await untilAnswers(`${gateway.url}/readyz`);
    await new Promise((resolve) => setTimeout(resolve, REST_AFTER_MS));
    memory.push(rssOf(gateway.pid) / MB);
  }
  return [
    measure(rpc, { gate: "P13", figure: "start to first answer of /rpc", unit: "ms", bound: { atMost: 500 } }),
    measure(rest, { gate: "P13", figure: "start to first answer of REST", unit: "ms", bound: { atMost: 1_000 } }),
    measure(memory, { gate: "P13", figure: "idle memory after the warm-up, RSS", unit: "MB", bound: { atMost: 100 } }),
  ];
}

/** The time of a command that needs no gateway, compared with Node without a program. */
async function measureCommand({ short, say }: BenchOptions): Promise<Figure[]> {
  say("P13: the command line");
  const file = await buildGateway();
  const timed = async (...args: string[]): Promise<number> => {
    const began = performance.now();
    await runProgram(process.execPath, args, { timeoutMs: 10_000 });
    return performance.now() - began;
  };
  const [bare, ours]: [number[], number[]] = [[], []];
  for (let start = 0; start < (short ? 3 : COMMANDS); start++) {
    bare.push(await timed("-e", "0"));
    ours.push(await timed(file, "--version"));
  }
  const figure = "agent-gateway --version";
  return [
    compare(ours, bare, { gate: "P13", figure, unit: "ms", bound: { atMost: 1.5 }, note: "compared with node -e 0" }),
  ];
}

function untilAnswered(url: string, { path, headers, body }: Call): Promise<void> {
  return untilAnswers(url + path, { method: "POST", headers, body });
}

const MINUTES_3 = 180_000;
const FIGURE = "production install";

/** P13: the installed size of the package, without development and optional dependencies. */
async function measureInstall({ say }: BenchOptions): Promise<Figure[]> {
  say("P13: packing and installing");
  const folder = mkdtempSync(join(tmpdir(), "gateway-install-"));
  try {
    return await install(folder);
  } catch (error) {
    return [unmeasured("P13", FIGURE, (error as Error).message.split("\n")[0] ?? "npm failed")];
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function install(folder: string): Promise<Figure[]> {
  // The build is current: `prepare` would only repeat it.
  await runProgram("npm", ["pack", "--ignore-scripts", "--pack-destination", folder], { timeoutMs: MINUTES_3 });
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz"));
  if (!tarball) throw new Error("npm pack wrote no tarball");
  writeFileSync(join(folder, "package.json"), '{"private":true}');
  const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
  await runProgram("npm", ["install", "--omit=dev", "--omit=optional", ...quiet, `./${tarball}`], {
    cwd: folder,
    timeoutMs: MINUTES_3,
  });
  const modules = join(folder, "node_modules");
  const ours = JSON.parse(readFileSync("package.json", "utf8")) as { name: string };
  const whole = existsSync(join(modules, ours.name, "dist/main.js"));
  const lock = JSON.parse(readFileSync(join(modules, ".package-lock.json"), "utf8")) as { packages: object };
  const own = sizeOf(join(modules, ours.name)) / 1e6;
  const figures = [
    measure([sizeOf(modules) / 1e6], {
      gate: "P13",
      figure: `${FIGURE}, size`,
      unit: "MB",
      bound: { atMost: 30 },
      note: `${own.toFixed(1)} MB of it are the gateway itself`,
    }),
    measure([Object.keys(lock.packages).length], {
      gate: "P13",
      figure: `${FIGURE}, packages`,
      bound: { atMost: 135 },
      note: "including the gateway",
    }),
  ];
  if (whole) return figures;
  // Without its content it would be small.
  return figures.map((figure) => ({
    ...figure,
    held: false,
    note: "the package has no dist/main.js and cannot run",
  }));
}

/** The bytes of a folder's files, regardless of the blocks of the disk. */
function sizeOf(path: string): number {
  const found = lstatSync(path);
  if (!found.isDirectory()) return found.size;
  return readdirSync(path).reduce((sum, name) => sum + sizeOf(join(path, name)), 0);
}

export const START_GATES: readonly Gate[] = [
  { gate: "P13", figure: "start", measure: measureStart },
  { gate: "P13", figure: "command line", measure: measureCommand },
  { gate: "P13", figure: FIGURE, measure: measureInstall },
];
