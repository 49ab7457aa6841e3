import { connect } from "node:net";
import { expect, test } from "vitest";
import { createPressure } from "#core/pressure.ts";
import { startProcess } from "#test/harness/process.ts";
import { requestText } from "#test/harness/raw.ts";
import { createRest } from "#test/harness/rest.ts";
import { agentWith, key } from "./configs.ts";

const place = { method: "POST", path: "/api/v1/chat/send" };
const REFUSALS = 500;
const AT_ONCE = 50;

/** Sends messages down one connection, always some of them on their way, until so many were refused. Counts the replies by status. */
const fill = async (url: string): Promise<Record<string, number>> => {
  const { port } = new URL(url);
  const socket = connect(Number(port), "127.0.0.1").setNoDelay();
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const padding = "x".repeat(200);
  const counts: Record<string, number> = {};
  let sent = 0;
  const send = (count: number) => {
    const requests = Array.from({ length: count }, () => {
      const body = JSON.stringify({ message: "Hi", session_id: `${++sent} ${padding}` });
      return requestText(place, { ...headers, "idempotency-key": `${sent}-${padding}` }, body);
    });
    socket.write(Buffer.concat(requests));
  };
  send(AT_ONCE);
  let rest = "";
  for await (const part of socket.setEncoding("latin1")) {
    const heads = (rest + part).split("HTTP/1.1 ");
    rest = heads.length > 1 ? "" : rest + part;
    const whole = heads.slice(1).filter((head) => head.length >= 3);
    for (const head of whole) counts[head.slice(0, 3)] = (counts[head.slice(0, 3)] ?? 0) + 1;
    if ((counts["503"] ?? 0) >= REFUSALS) break;
    send(whole.length);
  }
  return counts;
};

test("F24: near the end of its memory it refuses new turns, answers /healthz and reads, and lives", async () => {
  await using gateway = await startProcess({
    node: ["--max-old-space-size=36", "--max-semi-space-size=16"],
    config: agentWith({}),
  });
  const rest = createRest(gateway.url, key);
  const { json: first } = await rest.call("chat.send", { body: { message: "first" } });
  const { "200": completed = 0, "503": refused = 0, ...others } = await fill(gateway.url);
  expect(others).toEqual({});
  expect(refused).toBeGreaterThanOrEqual(REFUSALS);
  expect(completed).toBeGreaterThan(REFUSALS);
  const errors = gateway.records.flatMap(({ error }) => (typeof error === "string" ? [error] : []));
  expect(new Set(errors)).toEqual(new Set(["gateway-busy"]));

  expect((await rest.call("ops.healthz", { key: null })).status).toBe(200);
  const turn = await rest.call("turns.get", { path: { turn_id: String(first.turn_id) } });
  expect(turn.json).toMatchObject({ status: "completed", reply: "first" });
  gateway.kill("SIGTERM");
  expect(await gateway.exited).toEqual({ code: 0, signal: null });
}, 60_000);

test("memory is short near the limit of the heap or of the container, and no longer when it is free again", () => {
  let now = 0;
  const clock = { monotonic: () => now };
  const MB = 2 ** 20;
  const memory = { heap: 50 * MB, heapLimit: 100 * MB, resident: 50, residentLimit: 100 };
  const isShort = createPressure(clock, () => memory);
  const after = (change: Partial<typeof memory>): boolean => {
    now += 500;
    Object.assign(memory, change);
    return isShort();
  };
  expect(after({})).toBe(false);
  expect(after({ heap: 81 * MB })).toBe(true);
  expect(after({ heap: 79 * MB })).toBe(false);
  expect(after({ heap: 25 * MB, heapLimit: 36 * MB })).toBe(true);
  expect(after({ heap: 23 * MB })).toBe(false);
  expect(after({ resident: 91 })).toBe(true);
  expect(after({ resident: 89 })).toBe(false);
});
