import { expect, test, vi } from "vitest";
import { type Route, routes } from "#generated/routes.ts";
import { shareGateway } from "#test/harness/gateway.ts";

const CAUSE = "no such thing in /srv/gateway/secrets.json";

// The real doors, but that all they ask fails.
vi.mock("#wire/pages/ops.ts", async (original) => {
  const { createOpsDoors } = await original<typeof import("#wire/pages/ops.ts")>();
  const fail = () => {
    throw new TypeError(CAUSE);
  };
  return {
    createOpsDoors: (parts: Parameters<typeof createOpsDoors>[0]) =>
      createOpsDoors({ ...parts, uptimeMs: fail, readiness: fail, documents: fail, reference: fail, metrics: fail }),
  };
});
vi.mock("#wire/pages/index-page.ts", () => ({
  wantsPage: () => {
    throw new TypeError(CAUSE);
  },
}));

const gateway = await shareGateway();
const doors = (routes as readonly Route[]).filter(({ surface }) => surface === "public");

test.each(doors)("$operation answers 500 without a word of the cause, which the log has", async ({ method, path }) => {
  const reply = await gateway.rest.send(method, path, { key: gateway.rpcToken });
  expect(reply.error).toBe("internal");
  expect(reply.text).not.toMatch(/secrets|TypeError|srv/);
  const line = await gateway.logged("unexpected.error", { requestId: reply.requestId });
  expect(JSON.stringify(line)).toContain(CAUSE);
});
