import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type GatewayProcess, root, startProcess } from "#test/harness/process.ts";

// A program without our clients: openapi-fetch, with the types that openapi-typescript reads from the served document.

const folder = mkdtempSync(join(tmpdir(), "openapi-fetch-"));
let gateway: GatewayProcess;

beforeAll(async () => {
  gateway = await startProcess({ onFinished: () => {} });
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "program", type: "module" }));
  mkdirSync(join(folder, "node_modules/@types"), { recursive: true });
  for (const name of ["openapi-fetch", "openapi-typescript-helpers", "@types/node", "undici-types"])
    symlinkSync(join(root, "node_modules", name), join(folder, "node_modules", name));
  const types = [`${gateway.url}/openapi.json`, "--output", "gateway.ts", "--default-non-nullable=false"];
  execFileSync(process.execPath, [join(root, "node_modules/openapi-typescript/bin/cli.js"), ...types], { cwd: folder });
  // A hook cannot call `afterAll`. The function that it returns runs after the tests.
  return () => gateway[Symbol.asyncDispose]();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const CLIENT = `
import createClient from "openapi-fetch";
import type { components, paths } from "./gateway.js";

type Delivery = components["schemas"]["DeliverySummary"];

const client = createClient<paths>({
  baseUrl: process.env.GATEWAY_URL ?? "",
  headers: { authorization: \`Bearer \${process.env.REST_API_KEY}\` },
});
`;
const PROGRAM = `${CLIENT}
/** All pages of a list. */
async function* deliveries(): AsyncGenerator<Delivery> {
  for (let cursor: string | null | undefined; cursor !== null; ) {
    const { data, error } = await client.GET("/api/v1/deliveries", {
      params: { query: { limit: 2, ...(cursor !== undefined && { cursor }) } },
    });
    if (error) throw new Error(error.title);
    yield* data.deliveries;
    cursor = data.next_cursor;
  }
}

const replies: string[] = [];
const turns: string[] = [];
for (const message of ["one", "two", "three"]) {
  const { data, error, response } = await client.POST("/api/v1/chat/send", {
    body: { message },
    params: { header: { "Idempotency-Key": message } },
  });
  if (error) throw new Error(error.title);
  if (typeof data === "string" || !("reply" in data)) throw new Error(\`The turn is still running: \${response.status}\`);
  replies.push(data.reply);
  turns.push(data.turn_id);
}
const statuses: string[] = [];
for (const turn_id of turns) {
  const { data, error } = await client.GET("/api/v1/turns/{turn_id}", { params: { path: { turn_id } } });
  if (error) throw new Error(error.title);
  statuses.push(data.status);
}
const recorded: (string | null)[] = [];
for await (const { turn_id, outcome } of deliveries()) if (outcome === "completed") recorded.push(turn_id);
const { error, response } = await client.POST("/api/v1/chat/send", { body: { message: "hi", agent: "nobody" } });
const failure = [response.status, error?.type, error?.title, typeof error?.request_id];
console.log(JSON.stringify({ replies, statuses, sameTurns: recorded.join() === turns.toReversed().join(), failure }));
`;

function compile(file: string, code: string): string {
  writeFileSync(join(folder, file), code);
  const options = [
    "--noEmit",
    "--strict",
    "--exactOptionalPropertyTypes",
    "--target",
    "es2023",
    "--module",
    "nodenext",
  ];
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  return spawnSync(process.execPath, [tsc, ...options, file], { cwd: folder, encoding: "utf8" }).stdout;
}

describe("a program on openapi-fetch, typed by the served /openapi.json", () => {
  test("sends messages, reads turns and pages of deliveries, and gets a typed error", () => {
    expect(compile("program.ts", PROGRAM)).toBe("");
    const tsx = join(root, "node_modules/tsx/dist/esm/index.mjs");
    const { stdout, stderr, status } = spawnSync(process.execPath, ["--import", tsx, "program.ts"], {
      cwd: folder,
      env: {
        PATH: process.env.PATH ?? "",
        GATEWAY_URL: gateway.url,
        // The list of deliveries is for operators.
        REST_API_KEY: gateway.secrets.CONSOLE_TOKEN,
      },
      encoding: "utf8",
    });
    expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
    expect(JSON.parse(stdout)).toEqual({
      replies: ["one", "two", "three"],
      statuses: ["completed", "completed", "completed"],
      sameTurns: true,
      failure: [404, "/docs/errors.html#agent-not-found", "Agent not found", "string"],
    });
  });

  test("does not compile with mistakes", () => {
    const mistakes: [string, string][] = [
      [`await client.POST("/api/v1/chat/sned", { body: { message: "hi" } });`, '"/api/v1/chat/sned"'],
      [`await client.POST("/api/v1/chat/send", { body: { mesage: "hi" } });`, "'mesage' does not exist"],
      [`await client.POST("/api/v1/chat/send", { body: {} });`, "Property 'message' is missing"],
      [`await client.GET("/api/v1/turns/{turn_id}");`, "Expected 2 arguments, but got 1"],
      [`await client.GET("/api/v1/deliveries", { params: { query: { outcome: "fialed" } } });`, `'"fialed"'`],
      [`(await client.GET("/api/v1/deliveries")).data?.delivries;`, "Property 'delivries' does not exist"],
    ];
    const words = compile("wrong.ts", CLIENT + mistakes.map(([code]) => code).join("\n"));
    for (const [, message] of mistakes) expect(words).toContain(message);
  });
});
