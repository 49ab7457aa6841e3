import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { errors } from "#generated/errors.ts";
import { type McpSource, mcpTools } from "#generated/mcp-tools.ts";
import type { Operation } from "#generated/routes.ts";
import type { RpcMethod } from "#generated/rpc-types.ts";
import { SECRETS, type SomeConfig, shareGateway } from "#test/harness/gateway.ts";
import { openMcp } from "#test/harness/mcp.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { allowedBy, mistakesIn, type Schema, textMistakesIn } from "./arbitrary.ts";

// The documents, the generated tools, the surfaces that they come from and the MCP server have one contract.

const CONFIG: SomeConfig = {
  agents: {
    main: { backend: "echo" },
    slow: { backend: "echo", echo: { delayMs: 60_000 } },
    broken: { backend: "echo", echo: { fail: "No." } },
    idle: { backend: "echo", model: "fast", heartbeat: { every: "30m" } },
  },
  gateway: { defaultAgent: "main", mcp: { enabled: true, operator: "write" } },
  budgets: {
    daily: { per: "day", tokens: 1_000_000 },
    few: { per: "hour", tokens: 10, agents: ["slow"], cost: 5 },
  },
  webhooks: {
    mappings: {
      push: { match: { "body.kind": ["push"] }, message: "{body.text}", session: "webhook:push" },
      burst: {
        match: { "body.kind": ["burst"] },
        message: "{body.text}",
        coalesce: { key: "{body.text}", window: "4m" },
      },
    },
  },
};
const gateway = await shareGateway({ config: CONFIG });
const rpc = createRpc(gateway.url);
const mcp = await openMcp(gateway);
afterAll(() => mcp[Symbol.asyncDispose]());

type Args = Record<string, unknown>;
type Answer = { error: string | undefined; result: unknown };

/** Calls a tool on the surface that it comes from, with the arguments in the places that the surface expects. */
async function callSource({ from }: McpSource, args: Args): Promise<Answer> {
  if (from.surface === "rpc") {
    const { result, error } = await rpc.call(from.method as RpcMethod, args);
    return { result, error: error?.data.name };
  }
  const fieldsIn = (names: readonly string[]) =>
    Object.fromEntries(names.flatMap((name) => (name in args ? [[name, String(args[name])]] : [])));
  const placed = [...from.path, ...from.query];
  const others = Object.fromEntries(Object.entries(args).filter(([name]) => !placed.includes(name)));
  const unknown = from.body
    ? {}
    : Object.fromEntries(Object.entries(others).map(([name, value]) => [name, String(value)]));
  const { json, error } = await gateway.rest.call(from.operation as Operation, {
    key: SECRETS.adminKey,
    path: fieldsIn(from.path),
    query: { ...fieldsIn(from.query), ...unknown },
    body: from.body ? others : undefined,
  });
  return { result: json, error };
}

/** Calls a tool of the MCP server. */
async function callServer({ name }: McpSource, args: Args): Promise<Answer> {
  const { structured, isError, text, refused } = await mcp.call(name, args);
  const nameOf = Object.fromEntries(Object.entries(errors).map(([error, { title }]) => [title, error]));
  return { result: structured, error: refused ?? (isError ? nameOf[text.split(":")[0] ?? ""] : undefined) };
}

const WAYS = [
  ["on its own surface", callSource],
  ["by the MCP server", callServer],
] as const;

const ajv = new Ajv2020({ allowUnionTypes: true, strictRequired: false, validateFormats: false });
const validators = new Map<object, ValidateFunction>();
function faultsIn(schema: object, value: unknown) {
  const validate = validators.get(schema) ?? ajv.compile(schema);
  validators.set(schema, validate);
  return validate(value) ? [] : validate.errors;
}
const named = mcpTools.map((tool) => [tool.name, tool] as const);

describe("the documents and the tools", () => {
  type Described = { operationId?: string; name?: string; "x-mcp"?: { name: string; hint: string; title: string } };
  const describedIn = (nodes: readonly Described[]) =>
    nodes.flatMap(({ "x-mcp": tool, operationId, name }) => (tool ? [{ ...tool, source: operationId ?? name }] : []));

  test("every x-mcp of /openapi.json and rpc.discover is a tool, and every tool comes from one", async () => {
    const { paths } = (await gateway.rest.call("ops.openapi", { key: null })).json as unknown as { paths: object };
    const { result } = await rpc.call("rpc.discover" as RpcMethod);
    const { methods } = result as unknown as { methods: Described[] };
    const served = [
      ...describedIn(Object.values(paths).flatMap((item) => Object.values(item) as Described[])),
      ...describedIn(methods),
    ];
    const generated = mcpTools.map(({ name, hint, title, from }) => ({
      name,
      hint,
      title,
      source: from.surface === "rest" ? from.operation : from.method,
    }));
    expect(served.map(({ name, hint, title, source }) => ({ name, hint, title, source }))).toEqual(generated);
  });

  test.each(["auto", "legacy"] as const)(
    "the MCP server lists the same tools, to a client in the mode %s",
    async (mode) => {
      await using client = await openMcp(gateway, SECRETS.adminKey, mode);
      const listed = (await client.tools()).filter(({ name }) => !name.startsWith("ask_"));
      const bare = listed.map(({ name, title, description, inputSchema, outputSchema, annotations }) => {
        const { wait_seconds: _, ...properties } = inputSchema.properties as Args;
        const hint = annotations?.readOnlyHint ? "read" : annotations?.destructiveHint ? "destructive" : "write";
        return { name, title, description, hint, inputSchema: { ...inputSchema, properties }, outputSchema };
      });
      const byName = (one: { name: string }, other: { name: string }) => one.name.localeCompare(other.name);
      const generated = mcpTools.map(({ from: _, scope: __, isTrusted: ___, ...tool }) => tool);
      expect(bare.toSorted(byName)).toEqual(generated.toSorted(byName));
    },
  );

  test("only turn_get is for callers with the scope chat, and there are at most twelve for operators", () => {
    expect(mcpTools.flatMap(({ scope, name }) => (scope === "chat" ? name : []))).toEqual(["turn_get"]);
    expect(mcpTools.length).toBeLessThanOrEqual(13);
  });

  test.each(named)(
    "%s has closed arguments, an object as its result, and all of its shapes",
    (_, { inputSchema, outputSchema }) => {
      expect(inputSchema).toMatchObject({ type: "object", additionalProperties: false });
      expect(outputSchema).toMatchObject({ type: "object" });
      for (const schema of [inputSchema, outputSchema] as { $defs?: object }[]) {
        const text = JSON.stringify(schema);
        const links = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map(([, link]) => link);
        expect([...new Set(links)].toSorted()).toEqual(
          Object.keys(schema.$defs ?? {}).map((name) => `#/$defs/${name}`),
        );
        expect(text).not.toMatch(/"(x-[a-z-]+|discriminator|nullable|example|patternErrorMessage)":/);
        // Strict: an unknown keyword throws.
        expect(() => ajv.compile(schema)).not.toThrow();
      }
    },
  );

  test.each(named)("%s describes itself and each argument to a model", (_, { description, inputSchema }) => {
    expect(description).toMatch(/^[A-Z].{20,400}\.$/s);
    const { properties, $defs = {} } = inputSchema as {
      properties: Record<string, Described>;
      $defs?: Record<string, object>;
    };
    for (const [name, property] of Object.entries(properties)) {
      const shape = $defs[String((property as { $ref?: string }).$ref).replace("#/$defs/", "")];
      expect({ ...shape, ...property }, name).toHaveProperty("description");
    }
  });
});

describe("the schema of a tool and its surface agree on arguments", () => {
  /** Fields that a schema allows and a call may still refuse, and names of records that exist. */
  const REFUSABLE = ["cursor", "before", "from", "to"];
  const KNOWN: Args = { agent: "main", agentName: "main", agent_name: "main", name: "push" };
  const DRAFT = { name: "new", match: {}, message: "New" };
  const known = (args: object): Args => {
    const taken = Object.entries(args).filter(([name]) => !REFUSABLE.includes(name));
    return Object.fromEntries(
      taken.map(([name, value]) => {
        if (name === "mapping" && typeof value === "object") return [name, DRAFT];
        // A path belongs to its operation only if none of its parts is empty or a folder.
        if (/_id$/.test(name) && /^\.*$/.test(value)) return [name, "none"];
        return [name, KNOWN[name] ?? value];
      }),
    );
  };
  const isInvalid = (error: string | undefined) => error === "invalid-request" || error === "invalid-params";

  describe.each(named)("%s", (_, tool) => {
    const schema = tool.inputSchema as Schema;
    const allowed = allowedBy(tool.inputSchema as never, schema).map((args) => known(args as object));

    test.each(WAYS)("accepts what its schema allows, %s", async (_, call) => {
      await fc.assert(
        fc.asyncProperty(allowed, async (args) => {
          expect(faultsIn(schema, args)).toEqual([]);
          expect(isInvalid((await call(tool, args)).error), JSON.stringify(args)).toBe(false);
        }),
        { numRuns: 12 },
      );
    });

    const { from } = tool;
    const placed = from.surface === "rest" ? [...from.path, ...from.query] : [];
    const ofQuery = from.surface === "rest" ? from.query : [];
    const texts = Object.entries(schema.properties ?? {}).filter(([name]) => ofQuery.includes(name));
    // In an address every value is a text, and without a field of the path the address belongs to another operation.
    const isPlaced = (mistake: string) =>
      placed.some((name) => mistake === `${name} of another type` || mistake === `no ${name}`);
    const all = mistakesIn(tool.inputSchema as never, schema);
    const mistakes = [
      ...all.filter(([mistake]) => !isPlaced(mistake)).map(([...one]) => [...one, callSource] as const),
      ...all.map(([...one]) => [...one, callServer] as const),
      ...textMistakesIn(tool.inputSchema as never, { ...schema, properties: Object.fromEntries(texts) }).flatMap(
        ([...one]) => [[...one, callSource] as const, [...one, callServer] as const],
      ),
    ];
    test.each(mistakes)("refuses %s (%#)", async (mistake, make, call) => {
      await fc.assert(
        fc.asyncProperty(allowed, async (args) => {
          const wrong = make(args) as Args;
          expect(faultsIn(schema, wrong), mistake).not.toEqual([]);
          expect(isInvalid((await call(tool, wrong)).error), JSON.stringify(wrong)).toBe(true);
        }),
        { numRuns: 2 },
      );
    });
  });
});

/** The id of a new turn: completed, failed or running. */
async function newTurn(agent: "main" | "broken" | "slow"): Promise<string> {
  if (agent === "slow") return String((await gateway.hooks.agent({ message: "Wait.", agent })).json.turnId);
  const { json, problem } = await gateway.rest.call("chat.send", { body: { message: "Hello", agent } });
  return String(json.turn_id ?? problem.turn_id);
}
/** The id of the delivery of a webhook that `push` matches, or of another request. */
async function newDelivery(body: object = { kind: "push", text: "A push." }, below = ""): Promise<string> {
  return String((await gateway.hooks.send(below, body)).json.deliveryId);
}
/** The id of the newest delivery with this outcome. */
async function deliveryWith(outcome: string): Promise<string> {
  const { json } = await gateway.rest.call("deliveries.list", {
    key: SECRETS.adminKey,
    query: { outcome, limit: "1" },
  });
  return (json.deliveries as { delivery_id: string }[])[0]?.delivery_id ?? `no delivery is ${outcome}`;
}

/** Calls of each tool that bring every form of its result: the name of the form, and the arguments. */
const CALLS: Record<string, Record<string, () => Args | Promise<Args>>> = {
  list_turns: {
    "turns in all states": async () => {
      for (const agent of ["main", "broken", "slow"] as const) await newTurn(agent);
      return { limit: 500 };
    },
    "no turns": () => ({ session_id: "chat:none" }),
  },
  turn_get: {
    "a completed turn": async () => ({ turn_id: await newTurn("main") }),
    "a failed turn": async () => ({ turn_id: await newTurn("broken") }),
    "a running turn": async () => ({ turn_id: await newTurn("slow") }),
  },
  cancel_turn: { "a running turn": async () => ({ turn_id: await newTurn("slow") }) },
  pause_agent: { "an agent": () => ({ agent_name: "idle" }) },
  resume_agent: { "an agent": () => ({ agent_name: "idle" }) },
  budgets: { "budgets of tokens and of cost": () => ({}) },
  find_deliveries: {
    "deliveries of all outcomes": async () => {
      await newTurn("broken");
      await newDelivery();
      await newDelivery({ kind: "none" });
      await gateway.hooks.wake({ text: "Look.", mode: "next-heartbeat" });
      await gateway.hooks.mapped({}, { token: "wrong" });
      return { limit: 500 };
    },
    "no deliveries": () => ({ id: "none" }),
  },
  explain_delivery: {
    "a webhook that started a turn": async () => ({ delivery_id: await newDelivery() }),
    "a webhook that started an event": async () => {
      await gateway.hooks.wake({ text: "Look.", mode: "next-heartbeat" });
      return { delivery_id: await deliveryWith("queued") };
    },
    "a refused webhook": async () => {
      await gateway.hooks.mapped({}, { token: "wrong" });
      return { delivery_id: await deliveryWith("refused") };
    },
    "a failed message": async () => {
      await newTurn("broken");
      return { delivery_id: await deliveryWith("failed") };
    },
  },
  replay_delivery: {
    "a turn": async () => ({ delivery_id: await newDelivery() }),
    "a turn with another body": async () => ({
      delivery_id: await newDelivery(),
      body: { kind: "push", text: "New." },
    }),
    "no turn": async () => ({ delivery_id: await newDelivery(), body: { kind: "none" } }),
    "an event": async () => ({ delivery_id: await newDelivery({ text: "Look.", mode: "next-heartbeat" }, "/wake") }),
  },
  dry_run_mapping: {
    "a match": () => ({ body: { kind: "push", text: "A push." } }),
    "no match": () => ({ body: {}, headers: { "x-kind": "none" } }),
    "a draft": () => ({
      body: {},
      mapping: { name: "new", match: {}, message: "{body.kind}", session: "webhook:new" },
    }),
    "an open turn": async () => {
      await newDelivery({ kind: "burst", text: "One." });
      return { name: "burst", body: { kind: "burst", text: "One." } };
    },
  },
  agent_status: {
    "a failing agent": async () => {
      await newTurn("broken");
      return { agentName: "broken" };
    },
    "an agent with a heartbeat": () => ({ agentName: "idle" }),
  },
  health: { "the parts": () => ({}) },
  usage: { "the total": () => ({}), groups: () => ({ groupBy: "agent" }) },
};

test("each tool is called here", () => {
  expect(Object.keys(CALLS).toSorted()).toEqual(mcpTools.map(({ name }) => name).toSorted());
});

describe.each(named)("the result of %s is valid", (name, tool) => {
  const calls = Object.entries(CALLS[name] ?? {});
  test.each(calls.flatMap(([form, argsOf]) => WAYS.map(([way, call]) => [form, way, argsOf, call] as const)))(
    "with %s, %s",
    async (_, __, argsOf, call) => {
      const args = await argsOf();
      expect(faultsIn(tool.inputSchema, args)).toEqual([]);
      const { error, result } = await call(tool, args);
      expect(error).toBeUndefined();
      expect(faultsIn(tool.outputSchema, result)).toEqual([]);
    },
  );
});
