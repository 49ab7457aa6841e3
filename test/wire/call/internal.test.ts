import { describe, expect, test, vi } from "vitest";
import { type Route, routes } from "#generated/routes.ts";
import { shareGateway } from "#test/harness/gateway.ts";
import { targetOf } from "#test/harness/rest.ts";
import { BODIES, IDS } from "#test/wire/rest/provoke-gateways.ts";

const CAUSE = "no such thing in /srv/gateway/secrets.json, password hunter2";

// The real tables, in which every handler throws an unexpected error.
const { fail, failing } = vi.hoisted(() => {
  const fail = (): never => {
    throw new TypeError("no such thing in /srv/gateway/secrets.json, password hunter2");
  };
  const failing =
    <Parts extends never[]>(table: (...parts: Parts) => object) =>
    (...parts: Parts) =>
      Object.fromEntries(Object.keys(table(...parts)).map((operation) => [operation, fail]));
  return { fail, failing };
});
vi.mock("#handlers/openai/table.ts", async (original) => {
  const { openAiHandlers } = await original<typeof import("#handlers/openai/table.ts")>();
  return { openAiHandlers: failing(openAiHandlers as never) };
});
vi.mock("#handlers/rest/table.ts", async (original) => {
  const { restHandlers } = await original<typeof import("#handlers/rest/table.ts")>();
  return { restHandlers: failing(restHandlers as never) };
});
vi.mock("#handlers/hooks/table.ts", async (original) => {
  const { hooksHandlers } = await original<typeof import("#handlers/hooks/table.ts")>();
  return { hooksHandlers: failing(hooksHandlers as never) };
});
vi.mock("#wire/pages/ops.ts", async (original) => {
  const { createOpsDoors } = await original<typeof import("#wire/pages/ops.ts")>();
  return {
    createOpsDoors: (parts: Parameters<typeof createOpsDoors>[0]) =>
      createOpsDoors({ ...parts, uptimeMs: fail, readiness: fail, documents: fail, metrics: fail }),
  };
});
vi.mock("#wire/pages/files.ts", async (original) => ({ ...(await original<object>()), sendFile: fail }));
vi.mock("#wire/pages/index-page.ts", () => ({ wantsPage: fail }));

const gateway = await shareGateway({
  config: {
    gateway: { openai: { enabled: true } },
    webhooks: { mappings: { any: { match: {}, message: "hi" } } },
  },
});
const bodies: Record<string, unknown> = {
  ...BODIES,
  "hooks.wake": { text: "hi" },
  "hooks.agent": { message: "hi" },
  "hooks.mapped": {},
  "hooks.mappedByName": {},
};
function keyOf({ surface, operation }: Route): string {
  return operation === "codes.redeem"
    ? gateway.gateway.signInCode(gateway.consoleToken)
    : surface === "hooks"
      ? gateway.webhookToken
      : surface === "public"
        ? gateway.rpcToken
        : gateway.consoleToken;
}

describe.each(routes as readonly Route[])("$operation, when its handler throws", (route) => {
  const { operation, surface, method, path } = route;

  test("answers 500 without the cause, which the log has under the request id", async () => {
    const target = targetOf(path, { path: { ...IDS, name: "any" } });
    const reply = await gateway.rest.send(method, target, { key: keyOf(route), body: bodies[operation] });
    expect(reply.error).toBe("internal");
    if (surface === "openai") {
      const error = { message: "Internal error.", type: "server_error", param: null, code: "internal" };
      expect(reply.json.error).toEqual(error);
    } else expect(Object.keys(reply.problem).toSorted()).toEqual(["request_id", "status", "title", "type"]);
    expect(reply.text).not.toMatch(/secrets|TypeError|hunter2|srv/);
    const line = JSON.stringify(await gateway.logged("unexpected.error", { requestId: reply.requestId }));
    expect(line).toContain(CAUSE);
    expect(line).toContain("internal.test.ts");
  });
});

test("the recorder has the failed webhook, without the cause", async () => {
  const { requestId } = await gateway.hooks.wake({ text: "hi" });
  const { store } = gateway.gateway;
  const { items } = await store.listDeliveries({ id: requestId, limit: 10 });
  expect(items).toMatchObject([{ outcome: "refused", status: 500 }]);
  const kept = await store.getDelivery(String(items[0]?.deliveryId));
  expect(JSON.stringify([items, kept])).not.toMatch(/hunter2|TypeError/);
});
