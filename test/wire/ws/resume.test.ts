import { expect, test } from "vitest";
import type { Push } from "#generated/clients/typescript/src/rpc.ts";
import { yieldToOthers } from "#kit/yield.ts";
import { createPuppet, type Played } from "#test/harness/backends.ts";
import { shareGateway } from "#test/harness/gateway.ts";
import { createRandom } from "#test/harness/random.ts";
import { createCuttable, createSocketClient, openSocket } from "./socket.ts";

const puppet = createPuppet();
const gateway = await shareGateway({ makeBackend: () => puppet.backend });

/** A reader's state of a session: entries by `seq`, and the reply that is being written, by the offsets of its pieces. */
class Transcript {
  readonly entries = new Map<number, string>();
  readonly faults: string[] = [];
  reply = "";
  whole: string | undefined;
  #messageId = "";

  take({ method, params }: Push): void {
    if (method === "message.delta") {
      if (params.messageId !== this.#messageId) this.faults.push(`a piece of ${params.messageId}, which was not begun`);
      if (params.offset > this.reply.length) this.faults.push(`a gap before ${params.offset}`);
      // A reader that returns in the middle of a reply gets the reply from its start.
      if (params.offset < this.reply.length && params.offset !== 0) this.faults.push(`${params.offset} is told twice`);
      this.reply = this.reply.slice(0, params.offset) + params.text;
      return;
    }
    if (!("seq" in params)) {
      this.faults.push(`an unexpected ${method}`);
      return;
    }
    if (this.entries.has(params.seq)) this.faults.push(`entry ${params.seq} is told twice`);
    if (params.seq !== this.entries.size + 1)
      this.faults.push(`entry ${params.seq} is told after ${this.entries.size}`);
    this.entries.set(params.seq, method);
    if (method === "message.created" && params.role === "assistant") {
      this.#messageId = params.messageId;
      this.reply = "";
    }
    if (method === "message.completed") this.whole = params.text;
  }
}

test("a client that is disconnected 200 times during one long reply, anywhere, misses and repeats nothing", async () => {
  const random = createRandom(4711);
  const { open, WebSocket } = createCuttable();
  await using client = createSocketClient(gateway, { WebSocket });
  await client.agent.sendMessage({ agentName: "main", sessionId: "resume-1", message: "Tell me a story" });
  const played = await puppet.next();
  const transcript = new Transcript();
  const pushes = client.pushes();
  const { cursor } = await firstEntry("resume-1");
  await client.subscribe({ sessions: { "resume-1": cursor } });
  transcript.entries.set(1, "message.created");

  let said = "";
  const reading = (async () => {
    for await (const push of pushes) {
      transcript.take(push);
      if (push.method === "turn.completed") return;
    }
  })();

  for (let cuts = 0; cuts < 200; ) {
    const piece = `${"abcdefghij".slice(0, 1 + random.below(9))}${cuts} `;
    said += piece;
    played.say(piece);
    for (let turns = random.below(4); turns > 0; turns--) await yieldToOthers();
    if (random.chance(0.4)) {
      for (const socket of open) {
        if (random.chance(0.5)) (socket as unknown as { _socket: { destroy(): void } })._socket?.destroy();
        else socket.terminate();
        cuts++;
      }
      if (random.chance(0.5)) await expect.poll(() => open.size, { interval: 1 }).toBe(1);
    }
  }
  played.end();
  await reading;
  expect(gateway.linesOf("request", { operation: "rpc.subscribe" }).length).toBeGreaterThan(80);
  expect(transcript.faults).toEqual([]);
  expect(transcript.whole).toBe(said);
  expect(said.startsWith(transcript.reply)).toBe(true);
  expect([...transcript.entries.values()]).toEqual([
    "message.created",
    "turn.queued",
    "turn.started",
    "message.created",
    "message.completed",
    "turn.completed",
  ]);
});

test("a client that is disconnected while many turns run gets each entry once, in order", async () => {
  const random = createRandom(42);
  const { open, WebSocket } = createCuttable();
  await using client = createSocketClient(gateway, { WebSocket });
  using sender = await openSocket(gateway);
  let running = true;
  const answering = (async () => {
    while (running) answer(await puppet.next());
  })();
  await sender.call("agent.sendMessage", { agentName: "main", sessionId: "resume-2", message: "0", wait: true });
  const pushes = client.pushes();
  await client.subscribe({ sessions: { "resume-2": null } });
  const seen: number[] = [];
  const reading = (async () => {
    for await (const { method, params } of pushes) {
      if (method !== "message.delta" && "seq" in params) seen.push(params.seq);
      if (method === "turn.completed" && params.reply === "the reply to last") return;
    }
  })();
  for (let n = 1; n < 60; n++) {
    await sender.call("agent.sendMessage", { agentName: "main", sessionId: "resume-2", message: `${n}` });
    if (random.chance(0.6)) for (const socket of open) socket.terminate();
    if (random.chance(0.3)) await yieldToOthers();
  }
  await sender.call("agent.sendMessage", { agentName: "main", sessionId: "resume-2", message: "last" });
  await reading;
  running = false;
  await sender.call("agent.sendMessage", { agentName: "main", sessionId: "resume-2", message: "end" });
  await answering;
  expect(seen).toEqual(Array.from({ length: 6 * 60 }, (_, n) => n + 7));
});

test("typed pushes are an async iterator that ends with the client", async () => {
  const client = createSocketClient(gateway);
  const pushes = client.pushes();
  await client.subscribe({ agents: ["main"] });
  await client.agent.sendMessage({ agentName: "main", sessionId: "resume-3", message: "x" });
  answer(await puppet.next());
  for await (const push of pushes) {
    if (push.method !== "turn.completed") continue;
    const { reply, usage } = push.params;
    expect(reply).toBe("the reply to x");
    expect(usage.total).toBe(0);
    break;
  }
  const rest = client.pushes();
  client.close();
  expect(await rest.next()).toMatchObject({ done: true });
});

test("a client that lost its connection before the first push continues where its subscription started", async () => {
  const { open, WebSocket } = createCuttable();
  await using client = createSocketClient(gateway, { WebSocket });
  using sender = await openSocket(gateway);
  await sender.call("agent.sendMessage", { agentName: "main", sessionId: "resume-4", message: "x" });
  answer(await puppet.next());
  await sender.pushed("turn.completed");
  const pushes = client.pushes();
  await client.subscribe({ sessions: { "resume-4": null } });
  for (const socket of open) socket.terminate();
  await sender.call("agent.sendMessage", { agentName: "main", sessionId: "resume-4", message: "y" });
  answer(await puppet.next());
  const { value } = await pushes.next();
  expect(value).toMatchObject({ method: "message.created", params: { seq: 7, text: "y" } });
});

function answer(played: Played): void {
  played.say(`the reply to ${played.turn.message.text}`);
  played.end();
}

async function firstEntry(sessionId: string): Promise<{ cursor: string }> {
  using reader = await openSocket(gateway);
  const begun = await reader.call<{ sessions: Record<string, string> }>("rpc.subscribe", {
    sessions: { [sessionId]: null },
  });
  const here = Buffer.from(begun.sessions[sessionId] as string, "base64url").toString();
  await reader.call("rpc.subscribe", {
    sessions: { [sessionId]: Buffer.from(here.replace(/\d+$/, "0")).toString("base64url") },
  });
  return reader.pushed("message.created", ({ seq }) => seq === 1);
}
