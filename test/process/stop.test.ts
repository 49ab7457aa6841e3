import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { startProcess } from "#test/harness/process.ts";
import { openConnection, requestText } from "#test/harness/raw.ts";
import { createRest } from "#test/harness/rest.ts";
import { agentWith, key } from "./configs.ts";

const env = { LOG_LEVEL: "debug" };

/** A request without its last byte: its connection is busy, and the gateway does not know the operation yet. */
async function beginRequest(url: string, ...[place, headers, body]: Parameters<typeof requestText>) {
  const bytes = requestText(place, headers, body);
  const connection = await openConnection(url);
  await connection.flush(bytes.subarray(0, -1));
  return {
    finish() {
      connection.write(bytes.subarray(-1));
      return connection.reply(place);
    },
    [Symbol.asyncDispose]: () => connection[Symbol.asyncDispose](),
  };
}

function outcomeOfConnecting(url: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ port: Number(new URL(url).port), host: "127.0.0.1" });
    socket
      .once("connect", () => resolve("connected"))
      .once("error", ({ code }: NodeJS.ErrnoException) => resolve(code));
    socket.once("connect", () => socket.destroy());
  });
}

test.each(["SIGTERM", "SIGINT"] as const)("%s to an idle gateway ends it with exit code 0", async (signal) => {
  await using gateway = await startProcess();
  gateway.kill(signal);
  expect(await gateway.exited).toEqual({ code: 0, signal: null });
  expect(gateway.records.find(({ event }) => event === "draining")).toMatchObject({ signal, running: 0 });
  expect(gateway.records.at(-1)).toMatchObject({ event: "drained", handedBack: 0 });
});

test("F22: during a drain, started requests finish and new ones are refused", async () => {
  await using gateway = await startProcess({ config: agentWith({ delayMs: 300, chunks: 4 }), env });
  const rest = createRest(gateway.url, key);
  const stream = await rest.stream("chat.send", { body: { message: "one two three four" } });
  const whole = rest.call("chat.send", { body: { message: "whole" } });
  await gateway.logged("turn.started", 2);
  const sending = { method: "POST", path: "/api/v1/chat/send" };
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  await using late = await beginRequest(gateway.url, sending, headers, '{"message":"late"}');
  await using ready = await beginRequest(gateway.url, { method: "GET", path: "/readyz" });
  await using health = await beginRequest(gateway.url, { method: "GET", path: "/healthz" });

  gateway.kill("SIGTERM");
  await gateway.logged("draining");
  const refused = await late.finish();
  expect(refused).toMatchObject({ status: 503, error: "shutting-down" });
  expect(refused.headers.get("retry-after")).toBe("1");
  expect(refused.headers.get("connection")).toBe("close");
  const unready = await ready.finish();
  expect(unready).toMatchObject({ status: 503, json: { ready: false, parts: { intake: { ok: false } } } });
  expect(unready.headers.get("retry-after")).toBe("1");
  expect(await health.finish()).toMatchObject({ status: 200 });
  await expect.poll(() => outcomeOfConnecting(gateway.url)).toBe("ECONNREFUSED");

  expect(await whole).toMatchObject({ status: 200, json: { status: "completed", reply: "whole" } });
  const events = await stream.all();
  expect(events.filter(({ event }) => event === "message.delta")).toHaveLength(4);
  expect(events.at(-1)?.event).toBe("turn.completed");
  expect(await gateway.exited).toEqual({ code: 0, signal: null });
});

/** Makes a process send itself SIGTERM once more, without a pause: on a busy machine a second may pass otherwise. */
const again = `process.once("SIGTERM", () => {
  const { now } = performance;
  const at = now.call(performance);
  performance.now = () => at;
  process.once("SIGTERM", () => (performance.now = now));
  setImmediate(() => process.kill(process.pid, "SIGTERM"));
})`;
const SIGNALS_TWICE = ["--import", `data:text/javascript,${encodeURIComponent(again)}`];

// They wait until that second is over.
describe.concurrent("another signal", () => {
  test("the same signal again within a second counts as one", async ({ onTestFinished: onFinished }) => {
    await using gateway = await startProcess({
      node: SIGNALS_TWICE,
      config: agentWith({ delayMs: 1_500 }),
      env,
      onFinished,
    });
    const reply = createRest(gateway.url, key).call("chat.send", { body: { message: "slow" } });
    await gateway.logged("turn.started");
    gateway.kill("SIGTERM");
    expect(await reply).toMatchObject({ status: 200, json: { reply: "slow" } });
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
    expect(gateway.records.filter(({ event }) => event === "draining")).toHaveLength(1);
  });

  test.for([
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const)(
    "F22: a second %s later ends it at once with %i",
    async ([signal, code], { onTestFinished: onFinished }) => {
      await using gateway = await startProcess({ config: agentWith({ delayMs: 60_000 }), env, onFinished });
      const rest = createRest(gateway.url, key);
      const failed = rest.call("chat.send", { body: { message: "never" } }).catch((error: Error) => error.message);
      await gateway.logged("turn.started");
      gateway.kill(signal);
      await gateway.logged("draining");
      await sleep(1_050); // the second in which it would count as the same
      gateway.kill(signal);
      expect(await gateway.exited).toEqual({ code, signal: null });
      expect(await failed).toBe("fetch failed");
    },
  );
});
