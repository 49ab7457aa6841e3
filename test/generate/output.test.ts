import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pinnedSpecs, runGenerate, runTsc, tempFolder } from "./pinned.ts";

const temp = tempFolder();
const out = join(temp.folder, "generated");
function generated(path: string) {
  return readFileSync(join(out, path), "utf8");
}
function all() {
  return readdirSync(out, { recursive: true, encoding: "utf8" }).filter((path) => /\.\w+$/.test(path));
}

/** Next to the output, and linked from it. */
const kept = join(temp.folder, "beside/kept");

beforeAll(async () => {
  for (const folder of [dirname(kept), out]) mkdirSync(folder);
  writeFileSync(kept, "");
  symlinkSync(dirname(kept), join(out, "link"));
  expect(await runGenerate("--specs", pinnedSpecs, "--out", out)).toEqual({ code: 0, output: "" });
});
afterAll(() => temp[Symbol.dispose]());

describe("the output of the generator from the pinned specs", () => {
  // A reviewer of the generator reads these files; longer output is compiled, called or followed below.
  test.each([
    "errors.ts",
    "hooks-handlers.ts",
    "mcp-tools.ts",
    "methods.ts",
    "rest-handlers.ts",
    "routes.ts",
    "rpc-handlers.ts",
  ])("%s is unchanged", async (path) => {
    await expect(generated(path)).toMatchFileSnapshot(`__snapshots__/${path}.txt`);
  });

  test.each([
    ["openapi.json", "#/components/"],
    ["openrpc.json", "#/components/"],
    ["config.schema.json", "#/$defs/"],
  ])("%s contains everything that it refers to", (path, home) => {
    const document = JSON.parse(generated(path));
    const links = [...generated(path).matchAll(/"\$ref": "([^"]+)"/g)].map(([, link = ""]) => link);
    expect(links.length).toBeGreaterThan(0);
    for (const link of links) {
      expect(link.startsWith(home), link).toBe(true);
      const target = link
        .split("/")
        .slice(1)
        .reduce((at, key) => at?.[key], document);
      expect(target, link).toBeDefined();
    }
  });

  test("every file with comments starts with its origin", () => {
    for (const path of all().filter((name) => /\.(ts|js)$/.test(name))) {
      expect(generated(path), path).toMatch(
        /^\/\/ (Generated|Copied) by "npm run generate" from (specs|scripts)\/\S+(, specs\/\S+)*; do not edit\.\n/,
      );
    }
  });

  test("validators import only the files next to them", () => {
    for (const path of all().filter((name) => name.startsWith("validators/") && name.endsWith(".js"))) {
      expect(generated(path), path).not.toMatch(/\brequire\(/);
      for (const [, from] of generated(path).matchAll(/^import .* from "(.*)";$/gm)) {
        expect(["./equal.js", "./join.js", "./lengths.js"]).toContain(from);
      }
    }
  });
});

test("files behind a link are not part of the output, and remain", () => {
  expect(existsSync(kept)).toBe(true);
});

describe("--check", { timeout: 60_000 }, () => {
  const contents = () => Object.fromEntries(all().map((path) => [path, generated(path)]));
  const check = () => runGenerate("--check", "--specs", pinnedSpecs, "--out", out);

  test("accepts the written output, so the same specs give the same bytes", async () => {
    expect(await check()).toEqual({ code: 0, output: "" });
  });

  test("names the edited, missing and extra files, and the command that fixes them", async () => {
    const before = contents();
    appendFileSync(join(out, "errors.ts"), "// edited\n");
    rmSync(join(out, "routes.ts"));
    writeFileSync(join(out, "clients", "extra.ts"), "");
    rmSync(join(out, "validators/hooks.js"));
    const { code, output } = await check();
    expect(code).toBe(1);
    expect(output).toContain("errors.ts");
    expect(output).toContain("routes.ts");
    expect(output).toContain("clients/extra.ts (no spec generates it)");
    expect(output).toContain("npm run generate");
    expect(output).not.toContain("methods.ts");
    expect(output, "machine code is not committed").not.toContain(".js");

    expect(await runGenerate("--specs", pinnedSpecs, "--out", out)).toEqual({ code: 0, output: "" });
    expect(contents()).toEqual(before);
  });
});

describe("the types of the pinned output", () => {
  const compile = async <Name extends string>(bodies: Record<Name, string>): Promise<Record<Name, string[]>> => {
    const names = Object.keys(bodies) as Name[];
    for (const name of names) writeFileSync(join(temp.folder, `${name}.ts`), bodies[name]);
    const options = "--noEmit --strict --target es2023 --module preserve --moduleResolution bundler --types node".split(
      " ",
    );
    const strict = "--noUncheckedIndexedAccess --erasableSyntaxOnly --verbatimModuleSyntax --skipLibCheck".split(" ");
    const files = names.map((name) => join(temp.folder, `${name}.ts`));
    const { output } = await runTsc(...options, ...strict, "--allowImportingTsExtensions", ...files);
    const faults = output.split("\n").filter((line) => line.includes("error TS"));
    const of = names.map((name) => [name, faults.filter((line) => line.includes(`/${name}.ts(`))] as const);
    expect(of.flatMap(([, found]) => found)).toHaveLength(faults.length);
    return Object.fromEntries(of) as Record<Name, string[]>;
  };
  const head = `
    import type { RestHandlers } from "./generated/rest-handlers.ts";
    import type { HooksHandlers } from "./generated/hooks-handlers.ts";
    import type { RpcHandlers } from "./generated/rpc-handlers.ts";
    import { routes } from "./generated/routes.ts";
    import { methods } from "./generated/methods.ts";
    import type { Config, ConfigFile } from "./generated/config-types.ts";
    import { config } from "./generated/validators/config.js";
    export const used = [routes, methods, config];
  `;
  const rest = `
    "chat.send": async ({ body, headers }) => ({ as: "accepted", body: { turn_id: body.message }, replayed: body.stream && headers["idempotency-key"] === "" }),
    "turns.list": async ({ query }) => [String(query.limit + 1)],
    "turns.events": async ({ path }) => ({ as: "events", body: (async function* () { yield { event: "turn.started" as const, id: "1", data: { turn_id: path.turn_id } }; })() }),
  `;

  const sound = `${head}
      export const handlers: RestHandlers<{ now: number }> = {${rest} "turns.erase": async (_, { now }) => { now.toFixed(); } };
      export const hooks: HooksHandlers<unknown> = { "hooks.wake": async ({ body }) => ({ ok: body.mode === "now" ? true : undefined }) };
      export const rpc: RpcHandlers<unknown> = {
        "turn.list": async ({ limit }) => [limit.toFixed()],
        "turn.start": async ({ text }) => ({ turnId: text, endedAt: null }),
      };
      export const file: ConfigFile = { agents: { main: { backend: "echo" } } };
      export const size = ({ port, limits, agents }: Config): number => port + limits.turns + (agents.main?.skills.length ?? 0);
  `;
  const unsound = `${head}
      export const handlers: RestHandlers<unknown> = {${rest}};
      export const hooks: HooksHandlers<unknown> = {};
      export const rpc: RpcHandlers<unknown> = { "turn.list": async () => [] };
  `;
  let faultsOf: { sound: string[]; unsound: string[] };
  beforeAll(async () => {
    faultsOf = await compile({ sound, unsound });
  });

  test("are valid, and give defaults to handlers", () => {
    expect(faultsOf.sound).toEqual([]);
  });

  test("refuse an operation without a body, on each surface, and operations that the contract does not have", () => {
    const faults = faultsOf.unsound;
    expect(faults).toHaveLength(3);
    expect(faults[0]).toContain('"turns.erase"');
    expect(faults[1]).toContain('"hooks.wake"');
    expect(faults[2]).toContain('"turn.start"');
  });
});
