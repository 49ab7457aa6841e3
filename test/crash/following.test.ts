import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { createRandom } from "#test/harness/random.ts";
import { startFollowing } from "./following.ts";
import type { FoundEntry } from "./found.ts";

const cursorOf = (seq: number) => Buffer.from(`s.epoch.1.${seq}`).toString("base64url");
const push = (seq: number, method = "turn.started") => ({
  method,
  params: { sessionId: "room", seq, cursor: cursorOf(seq) },
});
const kept = (...seqs: number[]): FoundEntry[] => seqs.map((seq) => ({ seq, name: "turn.started" }));

/** Never leaves for no reason: how often it is asked hangs on the machine's pace. */
const patient = { ...createRandom(1), chance: () => false };

/** A gateway that pushes some, is gone, and pushes the next some when it is asked to go on; answers what was said of it. */
const follow = async (given: readonly (readonly object[])[], entries: readonly FoundEntry[]) => {
  const server = createServer();
  const sockets = new WebSocketServer({ server });
  const asked: unknown[] = [];
  const left = [...given];
  const done = new Promise<void>((resolve) => {
    sockets.on("connection", (socket: WebSocket) => {
      socket.on("message", (data) => {
        const { id, params } = JSON.parse(String(data)) as {
          id: string;
          params: { sessions: Record<string, unknown> };
        };
        asked.push(params.sessions.room);
        const pushes = left.shift();
        if (!pushes) return resolve();
        socket.send(JSON.stringify({ jsonrpc: "2.0", id, result: { sessions: { room: cursorOf(0) } } }));
        for (const one of pushes) socket.send(JSON.stringify({ jsonrpc: "2.0", ...one }));
        socket.close();
      });
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const following = startFollowing({ random: patient, urls: [url], sessionIds: ["room"], restMs: 5 });
  await done;
  const stopped = following.stop();
  for (const socket of sockets.clients) socket.terminate();
  await stopped;
  server.close();
  const journals = [{ sessionId: "room", from: 1, entries: [...entries] }];
  const broken = following.verify({ turns: new Map(), events: new Map(), sessions: new Map(), journals });
  return { asked, words: broken.map(({ words }) => words), counts: following.counts() };
};

test("goes on behind what it heard last, wherever that was", async () => {
  const { asked, words, counts } = await follow([[push(1), push(2)], [push(3)]], kept(1, 2, 3, 4));
  expect(asked).toEqual([null, cursorOf(2), cursorOf(3)]);
  expect([words, counts.heard]).toEqual([[], 3]);
});

test.each<[string, (readonly object[])[], number[], RegExp]>([
  ["something that was left out", [[push(1)], [push(3)]], [1, 2, 3], /seq 3 was pushed where 2 was due/],
  ["something that came again", [[push(1), push(2)], [push(2)]], [1, 2], /seq 2 was pushed where 3 was due/],
  ["a stream that began anew", [[push(1)], [push(5, "stream.reset")]], [1], /it was reset/],
  ["what was pushed and is not kept", [[push(1), push(2)]], [1], /was pushed, and undefined is kept/],
])("tells of %s", async (_, given, seqs, words) => {
  expect((await follow(given, kept(...seqs))).words.join()).toMatch(words);
});
