import { expect, test } from "vitest";
import { yieldToOthers } from "#kit/yield.ts";
import { createPuppet, type Played } from "#test/harness/backends.ts";
import { type Start, startGateway } from "#test/harness/gateway.ts";
import { watchAccepted, watchHeld } from "#test/harness/held.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { deliveryOf } from "../../stores/world.ts";
import { clientFrame, closeCode, upgrade } from "./raw-socket.ts";
import { openSocket, type TestSocket } from "./socket.ts";

const MIB = 2 ** 20;
/** More than the network buffers of both sides hold. */
const FLOOD_BYTES = 24 * MIB;
const CHUNK = "x".repeat(32 * 1024);
/** RUN_LONG=1 uses the number of readers of the fault; both ends of each are in this process. */
const READERS = process.env.RUN_LONG === undefined ? 250 : 1_000;
/** Of a megabyte each: far more than the network buffers. */
const CALLS = 256;

function floods(makeBackend: NonNullable<Start["makeBackend"]>): Start {
  return {
    makeBackend,
    config: {
      agents: { main: { backend: "echo" }, flood: { backend: "echo" } },
      gateway: { defaultAgent: "main" },
      sessions: { compactAt: 0 },
    },
  };
}

/** A socket that subscribes and then reads nothing. */
async function openStopped({ url, rpcToken }: { url: string; rpcToken: string }, options: object) {
  const { socket } = await upgrade(url, { headers: { authorization: `Bearer ${rpcToken}` } });
  socket.write(clientFrame(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "rpc.subscribe", params: options })));
  await new Promise((resolve) => socket.once("readable", resolve));
  socket.read();
  return socket;
}

async function startTurn(
  socket: TestSocket,
  next: () => Promise<Played>,
  sessionId: string,
  agentName = "flood",
): Promise<Played> {
  await socket.call("agent.sendMessage", { agentName, sessionId, message: "x" });
  return next();
}
/** Lets a reply grow to this size, in pieces that are each a separate push. */
async function flood(played: Played[], bytes: number, look?: () => void): Promise<void> {
  for (let said = 0; said < bytes; said += CHUNK.length * played.length) {
    for (const one of played) one.say(CHUNK);
    await yieldToOthers();
    await yieldToOthers();
    look?.();
  }
}

test("a reader that stops is closed with 1013; at most 1 MiB is buffered for it, and 50 others get everything meanwhile", async () => {
  const puppet = createPuppet();
  await using gateway = await startGateway({
    ...floods(() => puppet.backend),
    socketTimes: { pingMs: 3_000, stuckMs: 2_000 },
  });
  // Over HTTP, so it gets no pushes.
  const send = async (sessionId: string, agentName: string): Promise<Played> => {
    await createRpc(gateway.url).call("agent.sendMessage", { agentName, sessionId, message: "x" });
    return puppet.next();
  };
  const others = await Promise.all(Array.from({ length: 50 }, () => openSocket(gateway)));
  for (const other of others) await other.call("rpc.subscribe", { agents: ["main"] });
  const shared = await send("shared", "main");
  const accepted = watchAccepted();
  const stopped = await openStopped(gateway, { agents: ["flood"] });
  const look = watchHeld(accepted.slice(0, 1));
  const played: Played[] = [];
  for (let n = 0; n < 8; n++) played.push(await send(`slow-${n}`, "flood"));
  const said: string[] = [];
  for (let n = 0; n < 24; n++) {
    await flood(played, FLOOD_BYTES / 24, look);
    said.push(`piece ${n} `);
    shared.say(`piece ${n} `);
    await Promise.all(others.map((other) => other.pushed("message.delta", ({ text }) => text === `piece ${n} `)));
  }
  expect(look().held).toBe(1);
  // The piece that reached the limit may exceed it.
  expect(look().most).toBeLessThan(MIB + CHUNK.length);
  for (const one of played) one.end();
  for (const { turn } of played) await gateway.logged("turn.ended", { turnId: turn.turnId });
  shared.end();
  await Promise.all(others.map((other) => other.pushed("turn.completed", ({ reply }) => reply === said.join(""))));
  for (const other of others) {
    expect(other.pushesOf("message.delta").map(({ text }) => text)).toEqual(said);
    expect(other.names()).toHaveLength(6);
  }
  await gateway.logged("socket.cut");
  expect(await closeCode(stopped)).toBe(1013);
  await gateway.logged("socket.closed", { by: "1013" });
  stopped.destroy();
});

test("a slow reader loses pieces, which the next offset shows, and no entry", async () => {
  const puppet = createPuppet();
  await using gateway = await startGateway(floods(() => puppet.backend));
  using sender = await openSocket(gateway);
  using reader = await openSocket(gateway);
  await reader.call("rpc.subscribe", { agents: ["flood"] });
  const small = await startTurn(sender, puppet.next, "slow-small");
  await reader.pushed("message.created", ({ role }) => role === "assistant");
  reader.ws.pause();
  const played: Played[] = [];
  for (let n = 0; n < 8; n++) played.push(await startTurn(sender, puppet.next, `slow-${n}`));
  await flood(played, FLOOD_BYTES);
  small.say("lost");
  await yieldToOthers();
  await yieldToOthers();
  reader.ws.resume();
  for (const one of played) one.end();
  await reader.until(() => reader.pushesOf("turn.completed").length === 8);
  small.say("kept");
  expect(await reader.pushed("message.delta", ({ text }) => text === "kept")).toMatchObject({ offset: 4 });
  small.end();
  const { text } = await reader.pushed("message.completed", ({ sessionId }) => sessionId === "slow-small");
  expect(text).toBe("lostkept");
  for (let n = 0; n < 8; n++) {
    const mine = reader.pushes.filter(({ params }) => "sessionId" in params && params.sessionId === `slow-${n}`);
    const entries = mine.filter(({ method }) => method !== "message.delta");
    expect(entries.map(({ params }) => "seq" in params && params.seq)).toEqual([1, 2, 3, 4, 5, 6]);
    const pieces = reader.pushesOf("message.delta").filter(({ sessionId }) => sessionId === `slow-${n}`);
    expect(pieces.reduce((sum, piece) => sum + piece.text.length, 0)).toBeLessThan(FLOOD_BYTES / 8);
  }
});

test("a slow reader misses deliveries, and gets `stream.reset` when it reads again, without a further change", async () => {
  await using gateway = await startGateway();
  using witness = await openSocket(gateway);
  using reader = await openSocket(gateway);
  for (const socket of [witness, reader]) await socket.call("rpc.subscribe", { gateway: null, deliveries: true });
  reader.ws.pause();
  const path = `/${"x".repeat(16 * 1024)}`;
  const count = FLOOD_BYTES / path.length;
  for (let n = 0; n < count; n++) {
    const delivery = deliveryOf(`dlv_${String(n).padStart(26, "0")}`);
    const unmatched = { requestId: `req_${"0".repeat(26)}`, path, answer: "unmatched" } as const;
    await gateway.gateway.store.recordDelivery({ ...delivery, ...unmatched }, { entries: 1e4, bytes: 1e9, refused: 1 });
  }
  // On a busy machine, the witness may be a slow reader, too.
  await witness.until(
    () => witness.pushesOf("delivery.recorded").length >= count || witness.pushesOf("stream.reset").length > 0,
  );
  reader.ws.resume();
  await reader.pushed("stream.reset");
  expect(reader.pushesOf("delivery.recorded").length).toBeLessThan(count);
});

test("a slow reader's connection is closed when a followed session is deleted", async () => {
  const puppet = createPuppet();
  await using gateway = await startGateway(floods(() => puppet.backend));
  using sender = await openSocket(gateway);
  const stopped = await openStopped(gateway, { agents: ["flood"] });
  const played = await startTurn(sender, puppet.next, "slow-deleted");
  await flood([played], FLOOD_BYTES);
  expect(gateway.linesOf("socket.cut")).toEqual([]);
  await sender.call("session.delete", { sessionId: "slow-deleted" });
  await gateway.logged("socket.cut");
  expect(await closeCode(stopped)).toBe(1013);
  stopped.destroy();
}, 60_000);

test("no call is read from a caller that does not read its answers, and it gets every answer when it reads again", async () => {
  const puppet = createPuppet();
  await using gateway = await startGateway(floods(() => puppet.backend));
  using sender = await openSocket(gateway);
  const played = await startTurn(sender, puppet.next, "slow-answers");
  await flood([played], MIB);
  played.end();
  await sender.pushed("turn.completed");
  using caller = await openSocket(gateway);
  caller.ws.pause();
  const params = { sessionId: "slow-answers" };
  for (let n = 0; n < CALLS; n++)
    caller.ws.send(JSON.stringify({ jsonrpc: "2.0", id: n, method: "session.get", params }));
  const answered = () => gateway.linesOf("request", { operation: "session.get" }).length;
  await gateway.until(() => answered() > 0);
  for (let n = 0; n < 20; n++) await sender.call("agent.list");
  expect(answered()).toBeLessThan(CALLS);
  caller.ws.resume();
  await caller.until(() => caller.responses.length === CALLS);
  expect(new Set(caller.responses.map(({ id }) => id)).size).toBe(CALLS);
});

test(`F10: ${READERS} readers that stop delay no other caller's answers`, async () => {
  const puppet = createPuppet();
  await using gateway = await startGateway({
    ...floods(() => puppet.backend),
    socketTimes: { pingMs: 3_000, stuckMs: 500 },
  });
  using sender = await openSocket(gateway);
  const stopped = await Promise.all(Array.from({ length: READERS }, () => openStopped(gateway, { agents: ["flood"] })));
  const played = await startTurn(sender, puppet.next, "slow-many");
  for (let n = 0; n < 40; n++) {
    played.say(CHUNK);
    await sender.call("agent.list");
  }
  played.end();
  await sender.pushed("turn.completed");
  for (const socket of stopped) socket.destroy();
  await gateway.until(() => gateway.linesOf("socket.closed").length >= READERS);
  await sender.call("agent.list");
});
