import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type Route, routes } from "#generated/routes.ts";
import { shareGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import openapi from "../../generated/openapi.json" with { type: "json" };
import openrpc from "../../generated/openrpc.json" with { type: "json" };
import { allowedBy, mistakesIn, type Schema } from "./arbitrary.ts";

// Requests are made from the schemas alone. Each reply is held to the contract by the client, so that one which is not documented fails.

const RUNS = 20;
/** Fields that a schema allows and a call may refuse all the same. */
const MAY_BE_REFUSED: Readonly<Record<string, string>> = {
  cursor: "only cursors that the gateway gave are taken",
  stream: "a call over HTTP cannot be streamed to",
  from: "a span has to begin before it ends, and before now",
  to: "likewise",
};
const withoutThese = (fields: object): object =>
  Object.fromEntries(Object.entries(fields).filter(([name]) => !(name in MAY_BE_REFUSED)));
const gateway = await shareGateway({ config: { webhooks: { rateLimit: { maxRequests: 0 } } } });
const rpc = createRpc(gateway.url);

type Operation = { requestBody?: { content: Record<string, { schema: Schema }> } };
const bodyOf = ({ path, method }: Route): Schema | undefined => {
  const item = (openapi.paths as unknown as Record<string, Record<string, Operation>>)[path];
  return item?.[method.toLowerCase()]?.requestBody?.content["application/json"]?.schema;
};
const withBody = (routes as readonly Route[])
  .filter(({ surface }) => surface === "rest" || surface === "hooks")
  .flatMap((route) => {
    const schema = bodyOf(route);
    return schema ? [{ ...route, schema }] : [];
  });
const tokenOf = ({ surface, scope }: Route): string =>
  surface === "hooks" ? gateway.webhookToken : scope === "chat" ? gateway.key : gateway.consoleToken;
const send = (route: Route, body: object) => {
  const path = route.path.replaceAll(/\{\w+\}/g, "none-of-these");
  // A stream is held to the contract event by event, elsewhere.
  const sent = "stream" in body && body.stream === true ? { ...body, stream: false } : body;
  return gateway.rest.send(route.method, path, { key: tokenOf(route), body: sent });
};

describe.each(withBody.map((route) => [route.operation, route] as const))("%s", (_, { schema, ...route }) => {
  it("takes every body that its schema allows, or tells of something else than its form", async () => {
    await fc.assert(
      fc.asyncProperty(allowedBy(openapi as never, schema), async (body) => {
        expect(["internal", "invalid-request", "parse-error"]).not.toContain((await send(route, body as object)).error);
      }),
      { numRuns: RUNS },
    );
  });

  it.each(mistakesIn(openapi as never, schema))("refuses a body with %s", async (_, make) => {
    await fc.assert(
      fc.asyncProperty(allowedBy(openapi as never, schema), async (body) => {
        const { status, error } = await send(route, make(body as object));
        expect([status, error]).toEqual([400, "invalid-request"]);
      }),
      { numRuns: 3 },
    );
  });
});

type Method = { name: string; params: { name: string; required?: boolean; schema: Schema }[] };
const methods = (openrpc.methods as unknown as Method[]).filter(({ name }) => !name.startsWith("rpc."));

describe.each(methods.map((method) => [method.name, method] as const))("%s", (name, { params }) => {
  const schema: Schema = {
    type: "object",
    properties: Object.fromEntries(params.map((one) => [one.name, one.schema])),
    required: params.filter(({ required }) => required).map((one) => one.name),
    additionalProperties: false,
  };

  it("takes all params that their schemas allow, or tells of something else than their form", async () => {
    await fc.assert(
      fc.asyncProperty(allowedBy(openrpc as never, schema), async (given) => {
        const { error } = await rpc.call(name as never, withoutThese(given as object) as never);
        expect([-32603, -32602, -32600]).not.toContain(error?.code);
      }),
      { numRuns: RUNS },
    );
  });

  it.each(mistakesIn(openrpc as never, schema))("refuses params with %s", async (mistake, make) => {
    await fc.assert(
      fc.asyncProperty(allowedBy(openrpc as never, schema), async (given) => {
        const { error } = await rpc.call(name as never, make(given as object) as never);
        expect(error?.code).toBe(mistake.startsWith("no ") ? -32600 : -32602);
      }),
      { numRuns: 3 },
    );
  });
});
