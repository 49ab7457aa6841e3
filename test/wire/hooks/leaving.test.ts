import { expect, test } from "vitest";
import { SECRETS, startGateway } from "#test/harness/gateway.ts";
import { openConnection, requestText } from "#test/harness/raw.ts";
import { slowStore } from "#test/harness/stores.ts";

test("a sender that disconnects before its answer finds its work executed once", async () => {
  let isHeld = false;
  let release: (() => void) | undefined;
  await using gateway = await startGateway({
    wrapStore: (store) =>
      new Proxy(slowStore(store), {
        get: (slow, name, receiver) => {
          const method = Reflect.get(slow, name, receiver);
          if (name !== "queueEvent") return method;
          return async (...args: never[]) => {
            if (isHeld)
              await new Promise<void>((resolve) => {
                release = resolve;
              });
            return method(...args);
          };
        },
      }),
  });
  const headers = {
    "idempotency-key": "left",
    "x-gateway-token": SECRETS.webhookToken,
    "content-type": "application/json",
  };
  isHeld = true;
  await using connection = await openConnection(gateway.url);
  const request = requestText({ method: "POST", path: "/hooks/wake" }, headers, '{"text":"hi"}');
  connection.write(request);
  while (release === undefined) await new Promise(setImmediate);
  connection.socket.destroy();
  expect(await gateway.logged("request", { operation: "hooks.wake" })).toMatchObject({ status: 499 });
  isHeld = false;
  (release as () => void)();
  const { gateway: running, hooks } = gateway;
  while (running.store.stats().eventsQueued === 0) await new Promise(setImmediate);
  const again = await hooks.wake('{"text":"hi"}', { headers });
  expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([200, "true"]);
  expect(running.store.stats().eventsQueued).toBe(1);
  expect(gateway.linesOf("unexpected.error")).toEqual([]);
});
