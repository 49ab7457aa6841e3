import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { WebSocket } from "ws";
import { NOISE } from "#test/crash/read.ts";
import { bearer, SECRETS } from "#test/crash/requests.ts";
import type { Fault, World } from "./world.ts";

function urlOf({ fleet, random }: World): string {
  return random.pick(fleet.urls);
}

/** Sends something and ignores the result; a gateway that is down at the time is not a fault of this client. */
async function post(url: string, token: string, body: string): Promise<number | undefined> {
  const options = { method: "POST", headers: bearer(token), body, signal: AbortSignal.timeout(10_000) };
  const answer = await fetch(url, options).catch(() => undefined);
  await answer?.arrayBuffer().catch(() => undefined);
  return answer?.status;
}

/** Sockets that start something, and close after a while. */
async function openMany(world: World, count: number, text: string, ms: number): Promise<void> {
  const { hostname, port } = new URL(urlOf(world));
  const sockets: Socket[] = Array.from({ length: count }, () =>
    connect(Number(port), hostname)
      .on("error", () => {})
      .on("connect", function (this: Socket) {
        this.write(text);
      }),
  );
  await pause(ms);
  for (const socket of sockets) socket.destroy();
}

const HOSTILE = [
  "",
  "{",
  "null",
  "[]",
  '{"message":1}',
  `{"__proto__":{"message":"x"},"message":${'"'.padEnd(3, "x")}`,
  `${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`,
  `{"message":"${"x".repeat(3_000_000)}"}`,
  '{"message":"\\ud800","text":"\\ud800"}',
  '{"jsonrpc":"2.0","id":1,"method":"agent.sendMessage","params":{"agentName":"nobody","message":"x"}}',
];
const DOORS: readonly [path: string, token: string][] = [
  ["/api/v1/chat/send", SECRETS.key],
  ["/rpc", SECRETS.rpcToken],
  ["/hooks/wake", SECRETS.webhookToken],
  ["/hooks/agent", SECRETS.webhookToken],
  ["/hooks/push-quick", SECRETS.webhookToken],
];

const NOISES = 5;

export const CLIENT_FAULTS: readonly Fault[] = [
  { name: "idle sockets", run: (world) => openMany(world, 200, "", 500) },
  {
    name: "half requests",
    run: (world) => openMany(world, 100, "POST /hooks/wake HTTP/1.1\r\nHost: a\r\nContent-Le", 500),
  },
  {
    name: "bodies cut",
    run: (world) => {
      const head = `Host: a\r\nAuthorization: Bearer ${SECRETS.webhookToken}\r\nContent-Type: application/json`;
      return openMany(
        world,
        100,
        `POST /hooks/wake HTTP/1.1\r\n${head}\r\nContent-Length: 1000\r\n\r\n{"text":"a`,
        300,
      );
    },
  },
  {
    name: "hostile bodies",
    run: async (world) => {
      for (const [path, token] of DOORS) {
        const body = world.random.pick(HOSTILE);
        const status = await post(`${urlOf(world)}${path}`, token, body);
        if (status !== undefined && status >= 500 && status !== 503)
          world.accuse(`a body of ${body.length} characters was answered with ${status}`, path);
      }
    },
  },
  {
    name: "guessed tokens",
    run: async (world) => {
      for (let n = 0; n < 30; n++) {
        const [path] = world.random.pick(DOORS);
        const status = await post(`${urlOf(world)}${path}`, `guess-${n}-of-somebody`, "{}");
        if (status !== undefined && status !== 401 && status !== 503)
          world.accuse(`a guessed token was answered with ${status}`, path);
      }
    },
  },
  {
    name: "readers that leave",
    run: async (world) => {
      const body = JSON.stringify({
        message: "a".repeat(2_000),
        agent: "slow",
        stream: true,
        session_id: noiseOf(world),
      });
      await Promise.all(
        Array.from({ length: 10 }, async () => {
          const leaving = AbortSignal.timeout(20 + world.random.below(100));
          const options = { method: "POST", headers: bearer(SECRETS.key), body, signal: leaving };
          await fetch(`${urlOf(world)}/api/v1/chat/send`, options)
            .then((answer) => answer.arrayBuffer())
            .catch(() => undefined);
        }),
      );
    },
  },
  {
    name: "readers that do not read",
    run: async (world) => {
      const headers = { authorization: `Bearer ${SECRETS.rpcToken}` };
      const socket = new WebSocket(`${urlOf(world).replace(/^http/, "ws")}/rpc/ws`, { headers });
      socket.on("error", () => {});
      // A gateway that is down at the time is not a fault of this client.
      const opened = once(socket, "open").catch(() => undefined);
      await Promise.race([opened, pause(2_000)]);
      if (socket.readyState === WebSocket.OPEN) {
        socket.send(
          '{"jsonrpc":"2.0","id":1,"method":"rpc.subscribe","params":{"agents":["quick","slow"],"gateway":null}}',
        );
        socket.pause();
        await pause(2_000);
      }
      socket.terminate();
    },
  },
  {
    name: "sessions compacted and deleted",
    run: async (world) => {
      const sessionId = noiseOf(world);
      const call = (method: string, params: object) =>
        post(`${urlOf(world)}/rpc`, SECRETS.rpcToken, JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
      const send = () => call("agent.sendMessage", { agentName: "slow", sessionId, message: "noise" });
      await Promise.all([send(), send(), send()]);
      await Promise.all([call("session.compact", { sessionId, keep: 1 }), send()]);
      if (world.random.chance(0.5)) await Promise.all([call("session.delete", { sessionId }), send()]);
    },
  },
];

function noiseOf({ random }: World): string {
  return `${NOISE}${random.below(NOISES)}`;
}
