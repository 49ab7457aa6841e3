import dns from "node:dns";
import { syncBuiltinESMExports } from "node:module";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createA2aBackend } from "#backends/a2a/a2a.ts";
import type { Backend } from "#backends/backend.ts";
import { createHttpBackend } from "#backends/http/http.ts";
import { createPost } from "#channels/post.ts";
import { systemClock } from "#kit/clock.ts";
import { KIND_NAMES, modelAt, openModels } from "#test/backends/model-kinds.ts";
import { failureOf } from "#test/backends/stand-ins/programs.ts";
import { collect, turnOf } from "#test/backends/suite.ts";
import { openHttpTransport } from "#tools/mcp/http.ts";

// A system on which every name resolves to the metadata address of a cloud.
const { lookup } = dns;
const asked: string[] = [];
beforeEach(() => {
  asked.length = 0;
  dns.lookup = ((host: string, options: { all?: boolean }, answer: (...found: unknown[]) => void) => {
    asked.push(host);
    if (options.all === true) answer(null, [{ address: "169.254.169.254", family: 4 }]);
    else answer(null, "169.254.169.254", 4);
  }) as unknown as typeof lookup;
  syncBuiltinESMExports();
});
afterEach(() => {
  dns.lookup = lookup;
  syncBuiltinESMExports();
});

const URL_IN_CONFIG = "http://metadata.example/latest";
const WORDS = "its host name leads to a link-local address or to a cloud's metadata address, which is refused";
const { signal } = new AbortController();

function ownOf(url: string) {
  return { connectMs: 1_000, clock: systemClock, headers: {}, url };
}
const backends: Record<string, (url: string) => Backend> = {
  ...Object.fromEntries(
    KIND_NAMES.map((kind) => [`a model of ${kind}`, (url: string) => openModels({ main: modelAt(kind, url) })]),
  ),
  "an HTTP agent": (url) =>
    createHttpBackend({ ...ownOf(url), agent: "main", models: [], secret: undefined, history: true }),
  "an A2A agent": (url) => createA2aBackend(ownOf(url)),
};

it.each(Object.entries(backends))("F32: %s is not connected to at a link-local address", async (_, backendAt) => {
  const error = await failureOf(collect(backendAt(URL_IN_CONFIG).run(turnOf(), signal)));
  expect(error.message).toContain(WORDS);
  expect(error.retryable).toBe(false);
  expect(asked).toEqual(["metadata.example"]);
});

it("F32: a channel is not connected to at a link-local address", async () => {
  const post = createPost({ clock: systemClock });
  const posting = { url: new URL(URL_IN_CONFIG), headers: {}, body: Buffer.from("{}"), hops: 1 };
  expect(await post(posting, signal)).toMatchObject({ kind: "failed", reason: expect.stringContaining(WORDS) });
});

it("F32: an MCP server is not connected to at a link-local address", async () => {
  const { transport, close } = openHttpTransport({
    url: URL_IN_CONFIG,
    headers: {},
    clock: systemClock,
    longestMs: 1_000,
    mayTell: () => true,
    refuse: () => {},
  });
  await expect(transport.send({ jsonrpc: "2.0", id: 1, method: "ping" })).rejects.toThrow(WORDS);
  await close();
});

it("F32: an address that the configuration contains is connected to", async () => {
  const post = createPost({ clock: systemClock });
  // Nothing listens there; the test only checks that no name is resolved and nothing is refused.
  const posting = { url: new URL("http://[::ffff:169.254.0.1]:1/"), headers: {}, body: Buffer.from("{}"), hops: 1 };
  const ending = new AbortController();
  const outcome = post(posting, ending.signal);
  ending.abort();
  expect(await outcome).not.toMatchObject({ reason: expect.stringContaining(WORDS) });
  expect(asked).toEqual([]);
});
