import { afterAll, describe, expect, test } from "vitest";
import { errors } from "#generated/errors.ts";
import { type Operation, routes } from "#generated/routes.ts";
import type { Route } from "#test/harness/contract.ts";
import { closeGateways, impossible, provocations } from "./provoke.ts";

afterAll(closeGateways);

const served = (routes as readonly Route[]).filter(({ surface }) => surface !== "hooks");

describe.each(served)("$operation", (route) => {
  for (const name of route.errors) {
    if (name === "internal" && route.surface === "rest") continue; // rest-internal.test.ts
    const reason = impossible[`${route.operation as Operation} ${name}`] ?? impossible[name];
    const provoke = provocations[name];
    test.skipIf(reason)(`answers ${errors[name].status} ${name}${reason ? ` (not yet: ${reason})` : ""}`, async () => {
      if (!provoke) throw new Error(`nothing in provoke.ts makes ${route.operation} answer ${name}`);
      const reply = await provoke(route);
      expect(reply.problem).toMatchObject({ type: `urn:agent-gateway:error:${name}`, status: errors[name].status });
    });
  }
});
