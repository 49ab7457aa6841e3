import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { createRandom } from "#test/harness/random.ts";
import { KINDS, type Kind, markersIn } from "./orders.ts";
import { createCaller } from "./requests.ts";
import { startTraffic } from "./traffic.ts";

type Asked = { path: string; marker: string; key: string | undefined; body: string };

/** A gateway that does with each request as it is told, and a client at full speed. */
const meet = async (answer: (asked: Asked, response: ServerResponse) => void, kinds: readonly Kind[], lanes = 4) => {
  const asked: Asked[] = [];
  let heard = () => {};
  const server = createServer(async (request: IncomingMessage, response) => {
    let body = "";
    for await (const part of request) body += part;
    const inParams = /"idempotencyKey":"([^"]+)"/.exec(body)?.[1];
    const key = (request.headers["idempotency-key"] as string | undefined) ?? inParams;
    const one = { path: request.url ?? "", marker: markersIn(body)[0] ?? "", key, body };
    asked.push(one);
    answer(one, response);
    heard();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const caller = createCaller(5_000);
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const traffic = startTraffic({ caller, random: createRandom(7), run: "t", urls: [url], lanes, kinds });
  while (asked.length < 200) await new Promise<void>((resolve) => (heard = resolve));
  return {
    asked,
    traffic,
    async [Symbol.asyncDispose]() {
      await traffic.stop();
      caller.close();
      server.closeAllConnections();
      server.close();
    },
  };
};

const accept = ({ path, marker }: Asked, response: ServerResponse): void => {
  const id = marker.slice(1, -1);
  const results: Record<string, object> = {
    "/hooks/wake": { eventId: `evt_${id}` },
    "/api/v1/chat/send": { turn_id: `turn_${id}`, message_id: `msg_${id}`, session_id: "room", reply: marker },
    "/rpc": { jsonrpc: "2.0", result: { turnId: `turn_${id}`, messageId: `msg_${id}`, sessionId: "room" } },
  };
  response.writeHead(200).end(JSON.stringify(results[path] ?? { turnId: `turn_${id}`, sessionId: "room" }));
};

test.each(KINDS)("writes down what was answered to each %s, once or with its key again", async (kind) => {
  await using met = await meet(accept, [kind]);
  await met.traffic.stop();
  const { orders, counts } = met.traffic;
  const acknowledged = orders.filter(({ outcome }) => outcome === "acknowledged");
  expect(acknowledged.length).toBe(counts.acknowledged);
  for (const { marker, acks } of acknowledged)
    for (const { work } of acks) expect(work).toBe(`${kind === "wake" ? "evt" : "turn"}_${marker.slice(1, -1)}`);
  expect(acknowledged.reduce((sum, { acks }) => sum + acks.length, 0)).toBe(counts.acknowledged + counts.repeated);
});

test("sends what has no key once, whatever comes of it, and what has one until it is answered", async () => {
  const random = createRandom(3);
  await using met = await meet((asked, response) => {
    const fate = random.below(10);
    if (fate < 3) response.destroy();
    else if (fate < 5) response.writeHead(503).end("{}");
    else accept(asked, response);
  }, KINDS);
  await met.traffic.stop();
  const { orders } = met.traffic;
  const times = (marker: string) => met.asked.filter((one) => one.marker === marker).length;
  for (const { marker, key, outcome } of orders) {
    if (key === undefined) expect(times(marker)).toBeLessThanOrEqual(1);
    if (outcome === "acknowledged") expect(times(marker)).toBeGreaterThanOrEqual(1);
  }
  expect(orders.some(({ key, outcome }) => key === undefined && outcome === "unknown")).toBe(true);
  expect(orders.some(({ marker, key, outcome }) => key && outcome === "acknowledged" && times(marker) > 1)).toBe(true);
  await met.traffic.repeatLast(10);
  expect(orders.filter(({ key, outcome }) => key !== undefined && outcome === "unknown")).toEqual([]);
});

test("goes on with other orders where one gets no answer, and asks for it again between them", async () => {
  const LANES = 4;
  const timesOf = new Map<string, number>();
  let isStuck = true;
  await using met = await meet(
    (asked, response) => {
      const times = timesOf.get(asked.marker);
      if (asked.key !== undefined && (times !== undefined || timesOf.size < 2 * LANES))
        timesOf.set(asked.marker, (times ?? 0) + 1);
      if (isStuck && timesOf.has(asked.marker)) response.destroy();
      else accept(asked, response);
    },
    KINDS,
    LANES,
  );
  while ([...timesOf.values()].some((times) => times < 4)) await new Promise(setImmediate);
  expect(met.traffic.counts.acknowledged).toBeGreaterThan(10);
  isStuck = false;
  await met.traffic.stop();
  await met.traffic.repeatLast(10);
  expect(met.traffic.orders.filter(({ key, outcome }) => key !== undefined && outcome === "unknown")).toEqual([]);
});

test("takes a refusal for one only where nothing may be kept", async () => {
  const problem = (name: string) => JSON.stringify({ type: `urn:agent-gateway:error:${name}`, title: name });
  await using met = await meet(
    ({ path }, response) => {
      if (path === "/rpc") {
        const error = { code: -32004, message: "Busy", data: { name: "session-busy" } };
        response.writeHead(200).end(JSON.stringify({ jsonrpc: "2.0", id: 1, error }));
      } else response.writeHead(429).end(problem("session-busy"));
    },
    ["rpc", "agent"],
  );
  await met.traffic.stop();
  expect(new Set(met.traffic.orders.slice(0, 100).map(({ outcome }) => outcome))).toEqual(new Set(["refused"]));
});

test("notes a key that is refused, or taken with another body, after it was answered", async () => {
  const seen = new Set<string>();
  await using met = await meet(
    (asked, response) => {
      if (asked.key !== undefined && seen.has(asked.key) && !asked.body.includes(" and more")) {
        response.writeHead(422).end(JSON.stringify({ type: "urn:agent-gateway:error:idempotency-mismatch" }));
        return;
      }
      if (asked.key) seen.add(asked.key);
      accept(asked, response);
    },
    ["agent"],
  );
  while (!met.traffic.broken.some(({ words }) => words.includes("another body"))) await new Promise(setImmediate);
  const words = new Set(met.traffic.broken.map((one) => one.words));
  expect(words).toEqual(
    new Set(["a repeat was refused with 422 idempotency-mismatch", "a key was taken with another body"]),
  );
});
