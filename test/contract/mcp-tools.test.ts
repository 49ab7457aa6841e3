import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type McpSource, mcpTools } from "#generated/mcp-tools.ts";
import type { Operation } from "#generated/routes.ts";
import type { RpcMethod } from "#generated/rpc-types.ts";
import { SECRETS, type SomeConfig, shareGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { allowedBy, mistakesIn, type Schema, textMistakesIn } from "./arbitrary.ts";

// The documents, the generated tools and the surfaces behind them have one contract. Tools are called on the surface that they come from.

const CONFIG: SomeConfig = {
  agents: {
    main: { backend: "echo" },
    slow: { backend: "echo", echo: { delayMs: 60_000 } },
    broken: { backend: "echo", echo: { fail: "No." } },
    idle: { backend: "echo", model: "fast", heartbeat: { every: "30m" } },
  },
  gateway: { defaultAgent: "main" },
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

    test("accepts what its schema allows", async () => {
      await fc.assert(
        fc.asyncProperty(allowed, async (args) => {
          expect(faultsIn(schema, args)).toEqual([]);
          expect(isInvalid((await callSource(tool, args)).error), JSON.stringify(args)).toBe(false);
        }),
        { numRuns: 12 },
      );
    });

    const { from } = tool;
    const placed = from.surface === "rest" ? [...from.path, ...from.query] : [];
    const ofQuery: Schema = {
      ...schema,
      properties: Object.fromEntries(
        Object.entries(schema.properties ?? {}).filter(
          ([name]) => from.surface === "rest" && from.query.includes(name),
        ),
      ),
    };
    // In an address every value is a text, and without a field of the path the address belongs to another operation.
    const isTested = (mistake: string) =>
      !placed.some((name) => mistake === `${name} of another type` || mistake === `no ${name}`);
    const mistakes = [
      ...mistakesIn(tool.inputSchema as never, schema).filter(([mistake]) => isTested(mistake)),
      ...textMistakesIn(tool.inputSchema as never, ofQuery),
    ];
    test.each(mistakes)("refuses %s", async (mistake, make) => {
      await fc.assert(
        fc.asyncProperty(allowed, async (args) => {
          const wrong = make(args) as Args;
          expect(faultsIn(schema, wrong), mistake).not.toEqual([]);
          expect(isInvalid((await callSource(tool, wrong)).error), JSON.stringify(wrong)).toBe(true);
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
  test.each(Object.entries(CALLS[name] ?? {}))("with %s", async (_, argsOf) => {
    const args = await argsOf();
    expect(faultsIn(tool.inputSchema, args)).toEqual([]);
    const { error, result } = await callSource(tool, args);
    expect(error).toBeUndefined();
    expect(faultsIn(tool.outputSchema, result)).toEqual([]);
  });
});
