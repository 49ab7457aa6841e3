import { expect, test } from "vitest";
import { startGateway } from "#test/harness/gateway.ts";
import { startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";
import { agentWith, key } from "./configs.ts";

const CLIENTS = 40;

test("F22: under load every request gets its reply, a refusal, or no connection; none is cut and none hangs", async () => {
  await using gateway = await startProcess({ config: agentWith({ delayMs: 20 }) });
  const rest = createRest(gateway.url, key);
  const outcomes: Record<string, number> = {};
  /** Sends one message after another until the gateway accepts no more. */
  const send = async (): Promise<void> => {
    for (;;) {
      const outcome = await rest.call("chat.send", { body: { message: "load" } }).then(
        ({ status, error }) => (error ? `${status} ${error}` : String(status)),
        (error: Error) => String((error.cause as NodeJS.ErrnoException | undefined)?.code ?? error),
      );
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
      if (!/^(200|503 )/.test(outcome)) return;
    }
  };
  const clients = Array.from({ length: CLIENTS }, send);
  await gateway.logged("request", 200);
  gateway.kill("SIGTERM");
  await Promise.all(clients);

  // A connection between two requests may be closed when the next one is sent: that request was not read, as the log shows below.
  const { "200": completed = 0, "503 shutting-down": refused = 0, ...gone } = outcomes;
  const { ECONNREFUSED = 0, ECONNRESET = 0, UND_ERR_SOCKET = 0, ...others } = gone;
  expect(others).toEqual({});
  expect(ECONNREFUSED + ECONNRESET + UND_ERR_SOCKET).toBe(CLIENTS);
  expect(completed).toBeGreaterThanOrEqual(200);
  expect(await gateway.exited).toEqual({ code: 0, signal: null });
  const answered = gateway.records.filter(({ event }) => event === "request").map(({ status }) => status);
  expect(answered.filter((status) => status === 200)).toHaveLength(completed);
  expect(answered).toHaveLength(completed + refused);
  expect(gateway.records.at(-1)).toMatchObject({ event: "drained", handedBack: 0 });
});

test("F22: a caller gets an error for a turn that does not end in time, if the store is not durable", async () => {
  await using test = await startGateway({
    config: { agents: { main: { backend: "echo", concurrency: 1, echo: { delayMs: 60_000 } } } },
  });
  const { rest, gateway } = test;
  const running = rest.call("chat.send", { body: { message: "running" } });
  const stream = await rest.stream("chat.send", { body: { message: "queued", session_id: "queued" } });
  const queued = rest.call("chat.send", { body: { message: "queued too", session_id: "queued" } });
  await test.logged("turn.started");
  await expect.poll(() => gateway.store.stats().turnsQueued).toBe(2);

  await gateway.drain("test", 100);
  for (const reply of await Promise.all([running, queued])) {
    expect(reply).toMatchObject({ status: 503, error: "shutting-down" });
    expect(reply.problem.turn_id).toMatch(/^turn_/);
  }
  const last = (await stream.all()).at(-1);
  expect(last).toMatchObject({ event: "turn.failed", data: { error: { name: "shutting-down" } } });
});
