import { expect, it } from "vitest";
import { BackendError } from "#kit/errors.ts";
import { ask, MIB, openAgent } from "#outbound/ask.ts";
import { startRaw } from "#test/backends/stand-ins/raw-server.ts";
import { reset } from "./endings.ts";

const OK = "HTTP/1.1 200 OK\r\n";
const LONG = "x".repeat(40_000);
const CHUNKED = `${OK}transfer-encoding: chunked\r\n`;

/** Answers that HTTP does not allow, or that few servers send. */
const ANSWERS = {
  "a header that every object has": `${OK}__proto__: a\r\nconstructor: b\r\ncontent-length: 2\r\n\r\nok`,
  "a trailer that every object has": `${CHUNKED}connection: close\r\n\r\n2\r\nok\r\n0\r\n__proto__: x\r\ntoString: y\r\n\r\n`,
  "half a trailer": `${CHUNKED}connection: close\r\n\r\n2\r\nok\r\n0\r\nx: `,
  "another protocol": `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n${LONG}`,
  "an interim answer that closes": `HTTP/1.1 103 Early Hints\r\nconnection: close\r\n\r\n${OK}connection: close\r\n\r\n${LONG}`,
  "two answers": `${OK}content-length: 2\r\n\r\nok${OK}content-length: 2\r\n\r\nno`,
  "more than its length": `${OK}content-length: 2\r\nconnection: close\r\n\r\n${LONG}`,
  "two lengths": `${OK}content-length: 2\r\ncontent-length: 3\r\n\r\nok!`,
  "a body where none is allowed": `HTTP/1.1 204 No Content\r\n\r\n${LONG}`,
  "a chunk without end": `${CHUNKED}\r\nffffffffff\r\n${LONG}`,
  "no length": `${OK}\r\n${LONG}`,
  "HTTP/1.0 that stays open": `HTTP/1.0 200 OK\r\nconnection: keep-alive\r\n\r\n${LONG}`,
  "no status": "HTTP/1.1 000 x\r\n\r\n",
  "no head": LONG,
};

it.each(Object.entries(ANSWERS))("an answer with %s fails or is read, and affects nothing else", async (_, bytes) => {
  const uncaught: unknown[] = [];
  const onUncaught = (error: unknown) => void uncaught.push(error);
  process.on("uncaughtExceptionMonitor", onUncaught);
  await using raw = await startRaw();
  const agent = openAgent(1_000);
  const read = async (signal: AbortSignal): Promise<unknown> => {
    const request = { origin: raw.url, path: "/", method: "POST", headers: {}, body: "hello" } as const;
    try {
      return await (await ask(agent, "it", request, signal)).text(MIB);
    } catch (error) {
      return error;
    }
  };
  const never = new AbortController().signal;
  const results: unknown[] = [];
  raw.say({ bytes, end: true });
  for (let n = 0; n < 3; n++) results.push(await read(never));
  raw.say({ bytes });
  // Also resets a connection that a complete answer left open, and that the next request may use.
  const timer = setInterval(() => raw.sockets.splice(0).forEach(reset), 5);
  for (let n = 0; n < 3; n++) results.push(await read(never));
  clearInterval(timer);
  for (let n = 0; n < 3; n++) await read(AbortSignal.timeout(n));
  for (const result of results) expect(typeof result === "string" || result instanceof BackendError).toBe(true);
  await agent.destroy();
  process.off("uncaughtExceptionMonitor", onUncaught);
  expect(uncaught).toEqual([]);
});
