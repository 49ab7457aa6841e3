import { afterAll, describe, expect, test } from "vitest";
import { type ErrorName, errors } from "#generated/errors.ts";
import { routes } from "#generated/routes.ts";
import type { Route } from "#test/harness/contract.ts";
import { hookTransports } from "#test/harness/hooks.ts";
import { createProvocations } from "./provoke.ts";

const hooks = (routes as readonly Route[]).filter(({ surface }) => surface === "hooks");

/** These errors occur only over HTTP/1.1: a stopping gateway closes other connections, and a wrong length ends them. */
const OVER_HTTP1_ALONE: readonly ErrorName[] = ["shutting-down", "request-timeout"];

describe.each(Object.keys(hookTransports))("over %s", (way) => {
  const { provocations, close } = createProvocations(way);
  afterAll(close);

  describe.each(hooks)("$operation", (route) => {
    for (const name of route.errors) {
      if (name === "internal") continue; // internal.test.ts
      if (OVER_HTTP1_ALONE.includes(name) && way !== "HTTP/1.1") continue;
      const provoke = provocations[name];
      test(`answers ${errors[name].status} ${name}`, async () => {
        if (!provoke) throw new Error(`nothing in provoke.ts makes ${route.operation} answer ${name}`);
        const reply = await provoke(route);
        expect(reply.problem).toMatchObject({ type: `/docs/errors.html#${name}`, status: errors[name].status });
      });
    }
  });
});
