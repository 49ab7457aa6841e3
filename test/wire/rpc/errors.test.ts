import { afterAll, describe, expect, test } from "vitest";
import { type ErrorName, errors } from "#generated/errors.ts";
import { methods } from "#generated/methods.ts";
import type { RpcMethod } from "#generated/rpc-types.ts";
import { UNREACHABLE } from "#test/harness/pairs.ts";
import { transports } from "#test/harness/rpc.ts";
import { createStage, provocations } from "./provoke.ts";
import { scheduleProvocations } from "./provoke-schedules.ts";

// Every error of a method is caused, on every transport.

/** A refused WebSocket is answered over HTTP: test/wire/ws tests these errors. */
const BEFORE_THE_SOCKET: readonly ErrorName[] = ["unauthenticated", "tls-required"];

const pairs = Object.entries(methods).flatMap(([method, row]) =>
  row.errors.map((name) => ({ method: method as RpcMethod, name })),
);

describe.each(Object.entries(transports))("over %s", (transport, way) => {
  const stage = createStage(way);
  afterAll(stage.close);
  const isSocket = transport.startsWith("WebSocket");
  const here = pairs.filter(({ name }) => !(isSocket && BEFORE_THE_SOCKET.includes(name)));

  describe.each(here)("$method", ({ method, name }) => {
    const reason = UNREACHABLE[`${method} ${name}`];
    test.skipIf(reason)(`answers ${errors[name].code} ${name}${reason ? ` (not here: ${reason})` : ""}`, async () => {
      const provoke = scheduleProvocations[method]?.[name] ?? provocations[name];
      if (!provoke) throw new Error(`nothing in provoke.ts makes ${method} answer ${name}`);
      const { error } = await provoke({ ...stage, method });
      expect(error).toMatchObject({ code: errors[name].code, message: errors[name].title, data: { name } });
    });
  });
});
