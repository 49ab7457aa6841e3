import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Validate } from "../../scripts/generate/runtime/validators/validate.ts";
import { pinnedSpecs, runGenerate, tempFolder } from "./pinned.ts";

const temp = tempFolder();
let config: Record<string, Validate>;
let hooks: { bodies: Record<string, Validate> };
let rpc: { params: Record<string, Validate> };

beforeAll(async () => {
  expect(await runGenerate("--specs", pinnedSpecs, "--out", temp.folder)).toEqual({ code: 0, output: "" });
  // As Node itself loads it: without a loader, without TypeScript.
  const load = (name: string) =>
    import(/* @vite-ignore */ pathToFileURL(join(temp.folder, `validators/${name}.js`)).href);
  [config, hooks, rpc] = await Promise.all([load("config"), load("hooks"), load("rpc")]);
});
afterAll(() => temp[Symbol.dispose]());

function faults(validate: Validate | undefined, value: unknown) {
  expect(validate).toBeTypeOf("function");
  return validate?.(value) ? [] : validate?.errors?.map(({ instancePath, keyword }) => `${instancePath} ${keyword}`);
}

describe("the configuration's validator", () => {
  test("fills in every default: nested, of shared shapes, and of the chosen alternative", () => {
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

  test("gives each value its own copy of a default", () => {
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

  test("validates a single agent", () => {
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

  test("refuse a key that would reach an object's prototype", () => {
    const params = JSON.parse('{"text": "a", "__proto__": {"admin": true}}');
    expect(faults(rpc.params["turn.start"], params)).toEqual([" additionalProperties"]);
  });

  test("take `format` as documentation", () => {
    expect(faults(rpc.params["turn.start"], { text: "a", at: "99-99T99:99Z" })).toEqual([]);
  });
});
