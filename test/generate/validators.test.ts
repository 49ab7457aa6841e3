import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Validate } from "../../scripts/generate/runtime/validators/validate.ts";
import { pinnedSpecs, runGenerate, tempFolder } from "./pinned.ts";

const temp = tempFolder();
let config: Record<string, Validate>;
let rest: { replies: Record<string, Validate>; events: Validate; problem: Validate };
let hooks: Record<"bodies" | "replies", Record<string, Validate>>;
let rpc: { params: Record<string, Validate>; results: Record<string, Validate>; error: Validate };

beforeAll(async () => {
  expect(await runGenerate("--specs", pinnedSpecs, "--out", temp.folder)).toEqual({ code: 0, output: "" });
  // As Node itself loads it: no loader, no TypeScript.
  const load = (name: string) =>
    import(/* @vite-ignore */ pathToFileURL(join(temp.folder, `validators/${name}.js`)).href);
  [config, rest, hooks, rpc] = await Promise.all([load("config"), load("rest"), load("hooks"), load("rpc")]);
}, 60_000);
afterAll(() => temp[Symbol.dispose]());

const faults = (validate: Validate | undefined, value: unknown) => {
  expect(validate).toBeTypeOf("function");
  return validate?.(value) ? [] : validate?.errors?.map(({ instancePath, keyword }) => `${instancePath} ${keyword}`);
};

describe("the configuration's validator", () => {
  test("fills in every default: nested, of shared shapes, and of the choice that is made", () => {
    const value = { store: { type: "file", path: "a" }, agents: { main: { backend: "echo" } } };
    expect(faults(config.config, value)).toEqual([]);
    expect(value).toEqual({
      port: 18789,
      limits: { turns: 100 },
      store: { type: "file", path: "a", sync: true },
      agents: { main: { backend: "echo", skills: ["*"] } },
    });
    const other = { agents: { main: { backend: "echo" } } };
    expect(faults(config.config, other)).toEqual([]);
    expect(other).toMatchObject({ store: { type: "memory", bytes: 1024 } });
  });

  test("gives each value defaults of its own", () => {
    const [a, b] = [1, 2].map(() => ({ agents: { main: { backend: "echo" } } }) as { limits?: object; agents: object });
    config.config?.(a);
    config.config?.(b);
    expect(a?.limits).toEqual(b?.limits);
    expect(a?.limits).not.toBe(b?.limits);
  });

  test("reports every fault at once", () => {
    const value = { port: -1, colour: 1, limits: { turns: 0 }, agents: { Main: { backend: "x", skills: ["a", "a"] } } };
    expect(faults(config.config, value)?.sort()).toEqual([
      " additionalProperties",
      "/agents pattern",
      "/agents propertyNames",
      "/agents/Main/backend enum",
      "/agents/Main/skills uniqueItems",
      "/limits/turns minimum",
      "/port minimum",
    ]);
  });

  test("judges one agent alone", () => {
    expect(faults(config.agent, { backend: "echo" })).toEqual([]);
    expect(faults(config.agent, {})).toEqual([" required"]);
  });
});

describe("the validators of requests", () => {
  test("fill in defaults and stop at the first fault", () => {
    const params = {};
    expect(faults(rpc.params["turn.list"], params)).toEqual([]);
    expect(params).toEqual({ limit: 50 });
    const body = { text: "a" };
    expect(faults(hooks.bodies["hooks.wake"], body)).toEqual([]);
    expect(body).toEqual({ text: "a", mode: "next-heartbeat" });
    expect(faults(rpc.params["turn.start"], { text: "", idempotencyKey: 1 })).toHaveLength(1);
  });

  test("refuse what would reach an object's prototype", () => {
    const params = JSON.parse('{"text": "a", "__proto__": {"admin": true}}');
    expect(faults(rpc.params["turn.start"], params)).toEqual([" additionalProperties"]);
  });
});

describe("the validators of what is sent", () => {
  test("are there for each answer, problems too, and change nothing", () => {
    expect(Object.keys(rest.replies)).toEqual([
      "chat.send 200 application/json",
      "chat.send 200 text/event-stream",
      "chat.send 202 application/json",
      "chat.send 400 application/problem+json",
      "chat.send 401 application/problem+json",
      "turns.list 200 application/json",
      "turns.list 401 application/problem+json",
      "turns.erase 404 application/problem+json",
      "turns.events 200 text/event-stream",
      "turns.events 404 application/problem+json",
      "ops.healthz 200 text/plain",
    ]);
    expect(
      faults(rest.replies["chat.send 200 application/json"], { turn_id: "turn_1", reply: "", parts: { parts: [{}] } }),
    ).toEqual([]);
    expect(
      faults(rest.replies["chat.send 200 application/json"], { turn_id: "turn_1", reply: "", parts: { parts: [1] } }),
    ).toEqual(["/parts/parts/0 type"]);
  });

  test("know events, problems, results and RPC errors", () => {
    expect(faults(rest.events, { event: "turn.started", id: "1", data: { turn_id: "turn_1" } })).toEqual([]);
    expect(faults(rest.events, { event: "turn.stopped", id: "1", data: { turn_id: "turn_1" } })).not.toEqual([]);
    expect(faults(rest.problem, { type: "a", title: "b", status: 400, request_id: "req_1" })).toEqual([]);
    expect(faults(rpc.results["turn.start"], { turnId: "turn_1", endedAt: null })).toEqual([]);
    expect(faults(rpc.results["turn.start"], { turnId: "turn_1", endedAt: "soon" })).not.toEqual([]);
    expect(faults(rpc.error, { code: -32004, message: "Busy", data: { name: "busy", retryAfterMs: 5 } })).toEqual([]);
    expect(faults(rpc.error, { code: -32099, message: "Busy" })).toEqual(["/code enum"]);
    expect(faults(rpc.error, { code: -32004, message: "Busy", data: { name: "hook-refused" } })).toEqual([
      "/data/name enum",
    ]);
  });

  test("take `format` as documentation", () => {
    expect(faults(rpc.results["turn.start"], { turnId: "turn_1", endedAt: "99-99T99:99Z" })).toEqual([]);
  });
});
