import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SomeConfig } from "#test/harness/gateway.ts";
import { startGateway } from "#test/harness/gateway.ts";
import { openSocket, type TestSocket } from "./socket.ts";

function configOn(store: SomeConfig["store"]): SomeConfig {
  return {
    agents: { main: { backend: "echo", echo: { chunks: 6, delayMs: 1 } } },
    store,
  };
}
const RUNS = 40;
const TEXT = "one two three four five six";

type Sent = { socket: TestSocket; turnId: string };
/** The state of one run: two sockets, two sessions, and the started turns. */
type World = { sockets: TestSocket[]; sessions: string[]; sent: Promise<Sent>[]; calls: Promise<unknown>[] };
type Command = { socket: number; session: number; settle: boolean } & (
  | { do: "send"; wait: boolean }
  | { do: "subscribe" | "unsubscribe"; what: "session" | "agent" }
  | { do: "awaitPiece" }
);

const place = { socket: fc.nat(1), session: fc.nat(1), settle: fc.boolean() };
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ ...place, do: fc.constant("send" as const), wait: fc.boolean() }) },
  {
    weight: 5,
    arbitrary: fc.record({
      ...place,
      do: fc.constantFrom("subscribe" as const, "unsubscribe" as const),
      what: fc.constantFrom("session" as const, "agent" as const),
    }),
  },
  { weight: 3, arbitrary: fc.record({ ...place, do: fc.constant("awaitPiece" as const) }) },
);

function isEnd(method: string): boolean {
  return method === "turn.completed";
}

/** Sends a command, and waits for its answer only if requested. */
async function run(world: World, one: Command): Promise<void> {
  const socket = world.sockets[one.socket] as TestSocket;
  const sessionId = world.sessions[one.session] as string;
  let answer: Promise<unknown>;
  switch (one.do) {
    case "send": {
      const params = { agentName: "main", sessionId, message: TEXT, stream: true, wait: one.wait };
      const sent = socket
        .call<{ turnId: string }>("agent.sendMessage", params)
        .then(({ turnId }) => ({ socket, turnId }));
      world.sent.push(sent);
      answer = sent;
      break;
    }
    case "subscribe":
      answer = socket.call(
        "rpc.subscribe",
        one.what === "agent" ? { agents: ["main"] } : { sessions: { [sessionId]: null } },
      );
      break;
    case "unsubscribe":
      answer = socket.call("rpc.unsubscribe", one.what === "agent" ? { agents: ["main"] } : { sessions: [sessionId] });
      break;
    case "awaitPiece": {
      // The next piece or end on this socket; none follows after every turn has ended.
      const count = () => socket.order.filter((name) => name === "message.delta" || isEnd(name)).length;
      const before = count();
      const allEnded = Promise.all(world.sent.map(async (sent) => ended(await sent)));
      await Promise.race([socket.until(() => count() > before), allEnded]);
      return;
    }
  }
  world.calls.push(answer);
  if (one.settle && !(one.do === "send" && one.wait)) await answer;
}

function ended({ socket, turnId }: Sent) {
  return socket.pushed("turn.completed", (push) => push.turnId === turnId);
}

let runs = 0;

async function playOn(gateway: { url: string; rpcToken: string }, commands: Command[]): Promise<void> {
  using first = await openSocket(gateway);
  using second = await openSocket(gateway);
  const id = ++runs;
  const world: World = { sockets: [first, second], sessions: [`one-${id}`, `two-${id}`], sent: [], calls: [] };
  for (const sessionId of world.sessions)
    await first.call("agent.sendMessage", { agentName: "main", sessionId, message: "a", wait: true });
  for (const one of commands) await run(world, one);
  await Promise.all(world.calls);
  const all = await Promise.all(world.sent);
  await Promise.all(all.map(ended));
  // A repeated piece would arrive before the answers to these.
  for (const socket of world.sockets) for (let n = 0; n < 3; n++) await socket.call("agent.list");
  for (const { socket, turnId } of all) {
    const told = socket.pushes.filter(({ params }) => "turnId" in params && params.turnId === turnId);
    const pieces = told.flatMap(({ method, params }) => (method === "message.delta" ? [params as Piece] : []));
    let text = "";
    for (const piece of pieces) {
      expect(piece.offset).toBe(text.length);
      text += piece.text;
    }
    expect(text).toBe(TEXT);
    expect(told.find(({ method }) => isEnd(method))?.params).toMatchObject({ reply: TEXT });
    const names = told.map(({ method }) => method);
    expect(names.filter(isEnd)).toHaveLength(1);
    expect(names.lastIndexOf("message.delta")).toBeLessThan(names.findIndex(isEnd));
  }
  for (const { pushes } of world.sockets) {
    const entries = pushes.filter(({ method }) => method !== "message.delta").map(({ params }) => params.cursor);
    expect(new Set(entries).size).toBe(entries.length);
  }
}
type Piece = { offset: number; text: string };

describe("a sender gets every piece of its reply once and in order, then the end of the turn once", () => {
  const orders = fc.array(command, { minLength: 2, maxLength: 12 });

  test("in every order of subscribe, send and unsubscribe on two sockets", { timeout: 60_000 }, async () => {
    await using gateway = await startGateway({ config: configOn({ type: "memory" }) });
    await fc.assert(
      fc.asyncProperty(orders, (commands) => playOn(gateway, commands)),
      { numRuns: RUNS },
    );
  });

  test("the same if the store answers later", { timeout: 60_000 }, async () => {
    const folder = mkdtempSync(join(tmpdir(), "sender-pieces-"));
    {
      await using gateway = await startGateway({
        config: configOn({ type: "sqlite", path: join(folder, "store.db") }),
      });
      await fc.assert(
        fc.asyncProperty(orders, (commands) => playOn(gateway, commands)),
        { numRuns: RUNS },
      );
    }
    rmSync(folder, { recursive: true });
  });

  test("if it subscribes in the middle and unsubscribes before the end", async () => {
    await using gateway = await startGateway({ config: configOn({ type: "memory" }) });
    const here = { socket: 0, session: 0, settle: true };
    await playOn(gateway, [
      { ...here, do: "send", wait: false },
      { ...here, do: "awaitPiece" },
      { ...here, do: "subscribe", what: "agent" },
      { ...here, do: "awaitPiece" },
      { ...here, do: "unsubscribe", what: "agent" },
    ]);
  });
});
