import { readFileSync } from "node:fs";
import { Session } from "node:inspector/promises";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { createManualClock } from "#test/harness/clock.ts";
import { type SomeConfig, startGateway } from "#test/harness/gateway.ts";
import { importsOf, root } from "#test/harness/imports.ts";
import { openSocket } from "./wire/ws/socket.ts";

const page = readFileSync(join(root, "docs/architecture.md"), "utf8");
function sectionOf(title: string): string {
  const [, after = ""] = page.split(`## ${title}\n`);
  return after.split("\n## ")[0] as string;
}
function filesIn(text: string): string[] {
  return [...text.matchAll(/`((?:wire|handlers|core|store|backends)\/[\w/-]+)`/g)].map(([, file]) => `src/${file}.ts`);
}
/** The rows of a table that start with a file. */
function walkOf(title: string): string[] {
  return filesIn([...sectionOf(title).matchAll(/^\| \d+ \| (`[^`]+`)/gm)].map(([, file]) => file).join("\n"));
}
const beside = filesIn(sectionOf("Beside the walks"));
/** A reader opens these rooms for the promise of a name, and not to follow a call. */
const TOOLS = /^src\/(kit|observe|gateway|store\/(tables|memory|usage-counts)|config)\b/;

const mappings = { deploy: { match: { "body.kind": "deploy" }, message: "{body.service} is out" } };
// The clock does not move: timed work is not part of a walk.
const gateway = await startGateway({ config: { webhooks: { mappings } } as SomeConfig, clock: createManualClock() });
const socket = await openSocket(gateway);
afterAll(async () => {
  socket[Symbol.dispose]();
  await gateway[Symbol.asyncDispose]();
});

async function send(): Promise<void> {
  const { turnId } = await socket.call<{ turnId: string }>("agent.sendMessage", {
    agentName: "main",
    message: "Hello",
  });
  await socket.pushed("turn.completed", (push) => push.turnId === turnId);
}

const WALKS: [title: string, call: () => Promise<unknown>][] = [
  ["A message over REST", () => gateway.rest.call("chat.send", { body: { message: "Hello" } })],
  ["A message over the WebSocket", send],
  ["A webhook with a mapping", () => gateway.hooks.send("/deploy", { kind: "deploy", service: "billing" })],
];

/** The sources with a function that runs meanwhile. */
async function executed(call: () => Promise<unknown>): Promise<string[]> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await session.post("Profiler.takePreciseCoverage");
  await call();
  const { result } = await session.post("Profiler.takePreciseCoverage");
  session.disconnect();
  return result
    .filter(({ functions }) => functions.some(({ ranges }) => ranges.some(({ count }) => count > 0)))
    .filter(({ url }) => !url.includes("/node_modules/"))
    .map(({ url }) => url.slice(url.indexOf("/src/") + 1))
    .filter((file) => file.startsWith("src/"));
}

it.each(WALKS)("%s passes through the files that the page shows, and at most twelve", async (title, call) => {
  const walk = walkOf(title);
  expect(walk.length).toBeGreaterThan(5);
  expect(walk.length).toBeLessThanOrEqual(12);
  for (let n = 0; n < 3; n++) await call();
  const files = await executed(call);
  expect(walk.filter((file) => !files.includes(file))).toEqual([]);
  expect(files.filter((file) => !isShown(file, walk))).toEqual([]);
});

function isShown(file: string, walk: readonly string[]): boolean {
  return walk.includes(file) || beside.includes(file) || TOOLS.test(file);
}

it.each(WALKS)("%s never returns to the wire", (title) => {
  const walk = walkOf(title);
  const back = walk
    .flatMap(importsOf)
    .filter(({ from, to, typeOnly }) => !typeOnly && walk.includes(to) && walk.indexOf(to) < walk.indexOf(from));
  expect(back).toEqual([]);
});
