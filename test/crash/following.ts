import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { WebSocket } from "ws";
import type { Random } from "#test/harness/random.ts";
import { type Broken, breach } from "./breaches.ts";
import type { Found, FoundEntry } from "./found.ts";
import { entryOf, type Push, seqOf } from "./journals.ts";
import { SECRETS } from "./requests.ts";

type FollowOptions = {
  random: Random;
  urls: readonly string[];
  /** Sessions that are followed from their start. */
  sessionIds: readonly string[];
  /** The pause between two attempts to continue. */
  restMs?: number;
};

type Stream = { cursor: string | null; entries: FoundEntry[] };
type Answer = { id: string; result?: { sessions: Record<string, string> } };

const REST_MS = 100;
const SILENT_MS = 3_000;

/**
 * Follows streams over a WebSocket, and continues after the last push on another gateway if one is killed, disconnected or silent: no push is missing
 * or repeated, and every push is of a stored entry.
 */
export function startFollowing({ random, urls, sessionIds, restMs = REST_MS }: FollowOptions) {
  const broken: Broken[] = [];
  const streams = new Map<string, Stream>(sessionIds.map((id) => [id, { cursor: null, entries: [] }]));
  let isStopped = false;
  let resumed = 0;
  const say = (words: string, ...ids: (string | undefined)[]) =>
    broken.push(breach("a stream continues where it ended", words, ...ids));

  const hear = ({ method, params }: Push): void => {
    const stream = streams.get(params.sessionId);
    if (!stream || method === "message.delta") return;
    const due = stream.cursor === null ? params.seq : seqOf(stream.cursor) + 1;
    if (method === "stream.reset") say("it was reset", params.sessionId);
    else if (params.seq !== due) say(`seq ${params.seq} was pushed where ${due} was due`, params.sessionId);
    stream.cursor = params.cursor;
    if (method !== "stream.reset") stream.entries.push(entryOf(method, params));
  };

  /** Until the connection ends, or is silent for a while. */
  const followAt = async (url: string): Promise<void> => {
    const headers = { authorization: `Bearer ${SECRETS.rpcToken}` };
    const socket = new WebSocket(`${url.replace(/^http/, "ws")}/rpc/ws`, { headers, handshakeTimeout: SILENT_MS });
    let heardAt = performance.now();
    const asked = new Set<string>();
    socket.on("error", () => {});
    socket.on("message", (data) => {
      heardAt = performance.now();
      const message = JSON.parse(String(data)) as Push | Answer;
      if ("method" in message) return hear(message);
      const stream = streams.get(message.id);
      // The session does not exist yet, or the store is unavailable: it is read again.
      if (!message.result) asked.delete(message.id);
      else if (stream) stream.cursor ??= message.result.sessions[message.id] ?? null;
    });
    try {
      await Promise.race([once(socket, "open"), once(socket, "close")]);
      while (socket.readyState === WebSocket.OPEN && !isStopped) {
        for (const [id, { cursor }] of streams) {
          if (asked.has(id)) continue;
          asked.add(id);
          const params = { sessions: { [id]: cursor } };
          socket.send(JSON.stringify({ jsonrpc: "2.0", id, method: "rpc.subscribe", params }));
        }
        await pause(restMs);
        if (performance.now() - heardAt > SILENT_MS) return;
        // Sometimes without a reason.
        if (random.chance(0.01)) return;
      }
    } finally {
      socket.terminate();
      resumed++;
    }
  };

  const follow = async (): Promise<void> => {
    while (!isStopped) {
      await followAt(random.pick(urls)).catch(() => {});
      await pause(restMs);
    }
  };
  const running = follow();

  return {
    /** The number of continuations, and of received pushes. */
    counts: () => ({
      resumed,
      heard: [...streams.values()].reduce((sum, { entries }) => sum + entries.length, 0),
    }),
    async stop(): Promise<void> {
      isStopped = true;
      await running;
    },
    verify({ journals }: Found): Broken[] {
      for (const [id, { entries }] of streams) {
        const kept = journals.find(({ sessionId }) => sessionId === id);
        if (!kept) {
          if (entries.length > 0) say("it was followed, and is not there", id);
          continue;
        }
        for (const entry of entries) {
          const now = kept.entries[entry.seq - kept.from];
          if (entry.seq >= kept.from && JSON.stringify(now) !== JSON.stringify(entry))
            say(`${JSON.stringify(entry)} was pushed, and ${JSON.stringify(now)} is kept`, id);
        }
      }
      return broken;
    },
  };
}
