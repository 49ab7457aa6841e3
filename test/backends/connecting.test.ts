import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, it } from "vitest";
import { createA2aBackend } from "#backends/a2a/a2a.ts";
import type { Backend } from "#backends/backend.ts";
import { createHttpBackend } from "#backends/http/http.ts";
import { systemClock } from "#kit/clock.ts";
import { KIND_NAMES, modelAt, openModels } from "./model-kinds.ts";
import { failureOf } from "./stand-ins/programs.ts";
import { collect, turnOf } from "./suite.ts";

/** Accepts connections, and never answers a TLS handshake. */
async function startMute() {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => sockets.add(socket.on("error", () => {})));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

it("F06: a backend over HTTP must accept a connection within `connect`, whatever its protocol", async () => {
  await using mute = await startMute();
  const { url } = mute;
  const own = { connectMs: 100, clock: systemClock, headers: {}, url };
  const backends: Record<string, Backend> = {
    ...Object.fromEntries(
      KIND_NAMES.map((kind) => [kind, openModels({ main: modelAt(kind, url) }, { connectMs: 100 })]),
    ),
    http: createHttpBackend({ ...own, agent: "main", models: [], secret: undefined, history: true }),
    a2a: createA2aBackend(own),
  };
  const failed = Object.entries(backends).map(async ([kind, backend]) => {
    const error = await failureOf(collect(backend.run(turnOf(), new AbortController().signal)));
    expect([kind, error.message, error.retryable]).toEqual([
      kind,
      expect.stringMatching(/cannot be reached: no connection to it in time$/),
      true,
    ]);
  });
  await Promise.all(failed);
});
