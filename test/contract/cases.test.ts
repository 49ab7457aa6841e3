import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Route, routes } from "#generated/routes.ts";
import { SECRETS, type SomeConfig, shareGateway } from "#test/harness/gateway.ts";
import { openHttp2 } from "#test/harness/http2.ts";
import { type Reply, targetOf } from "#test/harness/rest.ts";
import { type Transport, transports } from "#test/harness/rpc.ts";
import type { RpcAnswer } from "#test/harness/rpc-contract.ts";
import openapi from "../../generated/openapi.json" with { type: "json" };
import openrpc from "../../generated/openrpc.json" with { type: "json" };
import { allowedBy, mistakesIn, resolve, type Schema, textMistakesIn } from "./arbitrary.ts";

// Requests are generated only from the schemas, and sent on every transport. The client validates each reply against the contract, so an undocumented
// one fails.

/** Requests of an operation on one transport. */
const RUNS = 12;
const RUNS_OF_A_MISTAKE = 2;
/** Mistakes are tested without TLS, because the reader gets the same bytes with TLS. */
function madeOver<Mistake>(way: string, mistakes: Mistake[]): Mistake[] {
  return way.endsWith("TLS") ? [] : mistakes;
}
/** Fields that a schema allows and a call may still refuse. */
const MAY_BE_REFUSED: Readonly<Record<string, string>> = {
  cursor: "only cursors that the gateway gave are taken",
  stream: "a call over HTTP cannot be streamed to",
  from: "a span has to begin before it ends, and before now",
  to: "likewise",
};
function withoutThese(fields: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([name]) => !(name in MAY_BE_REFUSED)));
}

/** Names of existing records: an invented one would be refused each time. */
const KNOWN = { agent: "main", agentName: "main", scheduleName: "yearly" };
/** A conversation must end with a message to answer. */
const ASKED = { role: "user", content: "Hello" };
const KNOWN_TO: Readonly<Record<string, object>> = {
  "completions.create": { model: "main", messages: [ASKED] },
  "mappings.dryRun": { name: "any", mapping: { name: "new", match: {}, message: "New" } },
  // A budget is named after its key, so the names of keys with a budget must differ.
  "keys.create": { agents: ["main"], scopes: ["chat"], budget: null },
  "budgets.grant": { until: null },
  "mappings.backtest": { mapping: { name: "new", match: {}, message: "New" } },
};
function withKnown(fields: object, operation: string): Record<string, unknown> {
  const known: Record<string, unknown> = { ...KNOWN, ...KNOWN_TO[operation] };
  return Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, name in known ? known[name] : value]));
}

/** Operations and methods whose invented names have no meaning here, in addition to those with a name in their path. */
const NOTHING_THERE = ["skills.trigger", "session.get", "session.compact", "session.delete"];

type Parameter = { name: string; in: "path" | "query" | "header"; required?: boolean; schema: Schema };
type Operation = {
  parameters?: (Parameter | { $ref: string })[];
  requestBody?: { content: Record<string, { schema: Schema }> };
};
function operationOf({ path, method }: Route): Operation {
  return (openapi.paths as unknown as Record<string, Record<string, Operation>>)[path]?.[method.toLowerCase()] ?? {};
}
function objectOf(fields: readonly Omit<Parameter, "in">[]): Schema {
  return {
    type: "object",
    properties: Object.fromEntries(fields.map(({ name, schema }) => [name, schema])),
    required: fields.filter(({ required }) => required).map(({ name }) => name),
    additionalProperties: false,
  };
}

/** The parts of an operation's requests that have schemas. */
function partsOf(route: Route) {
  const { parameters = [], requestBody } = operationOf(route);
  const all = parameters.map((one) => resolve(openapi as never, one as Schema) as unknown as Parameter);
  const placed = (place: Parameter["in"]) => objectOf(all.filter((one) => one.in === place));
  return {
    body: requestBody?.content["application/json"]?.schema,
    path: placed("path"),
    query: placed("query"),
    headers: placed("header"),
  };
}
function hasFields({ properties = {} }: Schema): boolean {
  return Object.keys(properties).length > 0;
}
function textsOf(fields: object): [string, string][] {
  return Object.entries(fields).map(([name, value]) => [name, String(value)]);
}

/** A request, as its parts. */
type Parts = { path: object; query: object; headers: object; body?: object };
function anyParts(
  { operation }: Route,
  { path, query, headers, body }: ReturnType<typeof partsOf>,
): fc.Arbitrary<Parts> {
  return fc.record({
    path: allowedBy(openapi as never, path) as fc.Arbitrary<object>,
    query: allowedBy(openapi as never, query).map((fields) => withoutThese(fields as object)),
    headers: allowedBy(openapi as never, headers) as fc.Arbitrary<object>,
    ...(body && { body: allowedBy(openapi as never, body).map((fields) => withKnown(fields as object, operation)) }),
  });
}

/** A path belongs to its operation whatever its parameters are: none is empty, or means a folder. */
function inPath(text: string): string {
  return /^\.*$/.test(text) ? "none" : text;
}
function inHeader(text: string): string {
  return text.replaceAll(/[^!-~]/gu, "x");
}
function targetFor(route: Route, { path, query }: Parts): string {
  const texts = textsOf(query);
  return targetOf(route.path, {
    path: Object.fromEntries(textsOf(path).map(([name, text]) => [name, inPath(text)])),
    ...(texts.length > 0 && { query: Object.fromEntries(texts) }),
  });
}

type PartsMistake = readonly [name: string, make: (given: Parts) => Parts];
const unknownParameter: PartsMistake = [
  "a query with an unknown parameter",
  (given) => ({ ...given, query: { ...given.query, surprise: 1 } }),
];

type Send = (route: Route, parts: Parts) => Promise<Reply>;
/** No mapping has the name of a path, and that is reported before a mistake in the headers. */
const MAY_BE_TOLD_INSTEAD: Readonly<Record<string, string>> = { "hooks.mappedByName": "mapping-not-found" };
const CONFIG: SomeConfig = {
  gateway: { openai: { enabled: true } },
  webhooks: { rateLimit: { maxRequests: 0 }, mappings: { any: { match: {}, message: "It came" } } },
};
const ways = Object.entries(transports).filter(([name]) => !name.startsWith("WebSocket"));

describe.each(ways)("over %s", async (way, { config }) => {
  const gateway = await shareGateway({ config: { ...CONFIG, gateway: { ...config?.gateway, ...CONFIG.gateway } } });
  // A connection opened here would be idle while earlier tests run, and the gateway would close it.
  let client: Awaited<ReturnType<typeof openHttp2>> | undefined;
  beforeAll(async () => {
    if (way !== "HTTP/1.1") client = await openHttp2(gateway.url);
  });
  afterAll(() => client?.[Symbol.asyncDispose]());

  const keyFor = ({ operation, surface, scope }: Route): string | null => {
    if (operation === "ops.metrics") return SECRETS.rpcToken;
    if (operation === "codes.redeem") return gateway.gateway.signInCode(SECRETS.consoleToken);
    if (surface === "public") return null;
    return surface === "hooks" ? SECRETS.webhookToken : scope === "chat" ? SECRETS.key : SECRETS.consoleToken;
  };
  const send: Send = (route, parts) => {
    const { method } = route;
    const path = targetFor(route, parts);
    const key = keyFor(route);
    const headers = Object.fromEntries(
      textsOf(parts.headers).map(([name, text]) => [name.toLowerCase(), inHeader(text)]),
    );
    // Another test validates a stream event by event.
    const whole = parts.body && "stream" in parts.body && parts.body.stream === true ? { stream: false } : {};
    const body = parts.body && { ...parts.body, ...whole };
    if (!client) return gateway.rest.send(method, path, { key, headers, body });
    const all = {
      ...headers,
      ...(key !== null && { authorization: `Bearer ${key}` }),
      ...(body && { "content-type": "application/json" }),
    };
    return client.send({ method, path }, all, body && JSON.stringify(body));
  };

  describe.each((routes as readonly Route[]).map((route) => [route.operation, route] as const))("%s", (_, route) => {
    const { body, path, query, headers } = partsOf(route);
    const parts = anyParts(route, { body, path, query, headers });
    const numRuns = body || [path, query, headers].some(hasFields) ? RUNS : 1;

    const isSkipped = route.operation === "config.get" && way === "HTTP/2 over TLS";
    const reason = isSkipped ? " (not here: this configuration has a path of the machine, the certificate's)" : "";
    it.skipIf(isSkipped)(`accepts the form of all requests that its schemas allow${reason}`, async () => {
      const errors: (string | undefined)[] = [];
      await fc.assert(
        fc.asyncProperty(parts, async (given) => {
          const { error } = await send(route, given);
          errors.push(error);
          expect(["internal", "invalid-request", "parse-error"]).not.toContain(error);
        }),
        { numRuns },
      );
      if (!hasFields(path) && !NOTHING_THERE.includes(route.operation)) expect(errors).toContain(undefined);
    });

    const mistakes: PartsMistake[] = [
      ...mistakesIn(openapi as never, body ?? {}).map(
        ([name, make]): PartsMistake => [
          `a body with ${name}`,
          (given) => ({ ...given, body: make(given.body as object) }),
        ],
      ),
      ...(route.surface === "rest" ? [unknownParameter] : []),
      ...textMistakesIn(openapi as never, query).map(
        ([name, make]): PartsMistake => [`a query with ${name}`, (given) => ({ ...given, query: make(given.query) })],
      ),
      ...textMistakesIn(openapi as never, headers).map(
        ([name, make]): PartsMistake => [
          `headers with ${name}`,
          (given) => ({ ...given, headers: make(given.headers) }),
        ],
      ),
    ];
    it.each(madeOver(way, mistakes))("refuses %s", async (what, make) => {
      await fc.assert(
        fc.asyncProperty(parts, async (given) => {
          const { error } = await send(route, make(given));
          expect([
            "invalid-request",
            ...(what.startsWith("headers") ? [MAY_BE_TOLD_INSTEAD[route.operation]] : []),
          ]).toContain(error);
        }),
        { numRuns: RUNS_OF_A_MISTAKE },
      );
    });
  });
});

type Method = { name: string; params: { name: string; required?: boolean; schema: Schema }[] };
const methods = (openrpc.methods as unknown as Method[]).filter(({ name }) => !name.startsWith("rpc."));

describe.each(Object.entries(transports))("over %s", async (way, { config, open }) => {
  const schedules = { yearly: { cron: "0 0 1 1 *", message: "hi" } };
  const gateway = await shareGateway({ config: { ...config, schedules } });
  let transport: Transport;
  beforeAll(async () => {
    transport = await open(gateway, SECRETS.rpcToken);
  });
  afterAll(() => transport[Symbol.asyncDispose]());
  const call = async (method: string, params: object): Promise<RpcAnswer> => {
    const { text } = await transport.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
    return JSON.parse(String(text));
  };

  describe.each(methods.map((method) => [method.name, method] as const))("%s", (name, { params }) => {
    const schema = objectOf(params);

    it("accepts the form of all params that their schemas allow", async () => {
      const codes: (number | undefined)[] = [];
      await fc.assert(
        fc.asyncProperty(allowedBy(openrpc as never, schema), async (given) => {
          const { error } = await call(name, withKnown(withoutThese(given as object), name));
          codes.push(error?.code);
          expect([-32603, -32602, -32600]).not.toContain(error?.code);
        }),
        { numRuns: RUNS },
      );
      if (!NOTHING_THERE.includes(name)) expect(codes).toContain(undefined);
    });

    it.each(madeOver(way, mistakesIn(openrpc as never, schema)))("refuses params with %s", async (mistake, make) => {
      await fc.assert(
        fc.asyncProperty(allowedBy(openrpc as never, schema), async (given) => {
          const { error } = await call(name, make(given as object));
          expect(error?.code).toBe(mistake.startsWith("no ") ? -32600 : -32602);
        }),
        { numRuns: RUNS_OF_A_MISTAKE },
      );
    });
  });
});
