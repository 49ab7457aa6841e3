import { once } from "node:events";
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createServer as createSecureServer } from "node:tls";
import { describe, expect, it } from "vitest";
import { Client } from "#backends/outbound/client.ts";
import type { AnswerController } from "#backends/outbound/connection.ts";
import { createGathering, type Gathering, type Holdable } from "#backends/outbound/gathering.ts";
import { systemClock } from "#kit/clock.ts";
import { disposable } from "./stand-ins/raw-server.ts";

const HEAD = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
const END = "0\r\n\r\n";
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;

const TLS = { cert: readFileSync("test/config/tls/cert.pem"), key: readFileSync("test/config/tls/key.pem") };
const SERVERS = {
  http: (take: (socket: Socket) => void) => createServer({ noDelay: true }, take),
  https: (take: (socket: Socket) => void) => createSecureServer({ ...TLS, noDelay: true }, take),
};
type Scheme = keyof typeof SERVERS;

/** A client, and a server whose side of each connection is the test's. */
const start = async (scheme: Scheme, gathering: Gathering) => {
  const sockets: Socket[] = [];
  const controllers: AnswerController[] = [];
  const awaited: ((socket: Socket) => void)[] = [];
  const server = SERVERS[scheme]((socket) => {
    sockets.push(socket.on("error", () => {}));
    socket.on("data", () => awaited.shift()?.(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const origin = `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = disposable(new Client(2_000, systemClock, { gathering, ca: TLS.cert }));
  return {
    sockets,
    /** A request that has come to the server, and what its handler has heard so far. */
    async ask() {
      const heard: string[] = [];
      let listener = () => {};
      let controller: AnswerController | undefined;
      const arrived = new Promise<Socket>((resolve) => awaited.push(resolve));
      const tell = (what: string) => {
        heard.push(what);
        listener();
      };
      client.dispatch(
        { origin, path: "/", headers: {}, body: "{}" },
        {
          onRequestStart(one) {
            controller = one;
            controllers.push(one);
          },
          onResponseStart: () => tell("head"),
          onResponseData: (_, bytes, from, to) => tell(bytes.toString("latin1", from, to)),
          onResponseEnd: () => tell("end"),
          onResponseError: (_, error) => tell(error.message),
        },
      );
      const socket = await arrived;
      return {
        ...{ heard, socket, controller: controller as AnswerController | undefined },
        closed: new Promise((resolve) => socket.once("close", resolve)),
        write: (text: string) => new Promise<void>((resolve) => socket.write(text, "latin1", () => resolve())),
        until: (count: number) =>
          new Promise<void>((resolve) => {
            listener = () => heard.length >= count && resolve();
            listener();
          }),
      };
    },
    async [Symbol.asyncDispose]() {
      // Those that are held would never hear of the server's end.
      for (const controller of controllers) controller.abort(new Error("the test is over"));
      await client.close();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};
type Started = Awaited<ReturnType<typeof start>>;

/** One whose time and releases are the test's. */
const manual = () => {
  const held: Holdable[] = [];
  return {
    ...{ holdMs: 40, time: 1_000, answers: 0, held },
    now() {
      return this.time;
    },
    begin() {
      this.answers++;
    },
    end() {
      this.answers--;
    },
    hold: (one: Holdable) => void held.push(one),
  };
};

/** An answer with "head" and nine pieces, which has flowed for so long by then that it is held. */
const flowing = async (server: Started, gathering: { time: number }) => {
  const answer = await server.ask();
  await answer.write(HEAD);
  await answer.until(1);
  for (let n = 0; n < 9; n++) {
    gathering.time += 30;
    await answer.write(chunk(`${n}`));
    await answer.until(2 + n);
  }
  return answer;
};

/** What can be read has been read by the end of these. */
const others = async (server: Started) => {
  for (let n = 0; n < 3; n++) {
    const other = await server.ask();
    await other.write(HEAD + END);
    await other.until(2);
  }
};

describe.each(["http", "https"] as const)("a reply over %s, while pieces are gathered", (scheme) => {
  it("comes piece by piece at first, and then what came meanwhile in one go", async () => {
    const gathering = manual();
    await using server = await start(scheme, gathering);
    const answer = await flowing(server, gathering);
    expect(gathering.held).toHaveLength(1);
    for (const piece of ["a", "b", "c"]) await answer.write(chunk(piece));
    await others(server);
    expect(answer.heard.join("")).toBe("head012345678");
    gathering.held.shift()?.release();
    await answer.until(13);
    expect(answer.heard.slice(10)).toEqual(["a", "b", "c"]);
    await answer.write(chunk("d") + END);
    gathering.held.shift()?.release();
    await answer.until(15);
    expect(answer.heard.slice(13)).toEqual(["d", "end"]);
    // The next answer by the same connection is young again.
    await others(server);
    expect(gathering).toMatchObject({ held: [], answers: 0 });
  });

  it("waits as long as either reason to wait holds", async () => {
    const gathering = manual();
    await using server = await start(scheme, gathering);
    const answer = await flowing(server, gathering);
    await answer.write(chunk("a"));
    answer.controller?.pause();
    answer.controller?.resume();
    await others(server);
    expect(answer.heard).toHaveLength(10);
    answer.controller?.pause();
    gathering.held.shift()?.release();
    await others(server);
    expect(answer.heard).toHaveLength(10);
    answer.controller?.resume();
    await answer.until(11);
    expect(gathering.held).toHaveLength(1);
  });

  it("is left at once where it is aborted, and released in vain", async () => {
    const gathering = manual();
    await using server = await start(scheme, gathering);
    const answer = await flowing(server, gathering);
    await answer.write(chunk("a"));
    answer.controller?.abort(new Error("enough"));
    await answer.closed;
    gathering.held.shift()?.release();
    await others(server);
    expect(answer.heard.slice(10)).toEqual(["enough"]);
    expect(gathering).toMatchObject({ held: [], answers: 0 });
  });

  it("breaks off as soon as it is released where its server has gone meanwhile", async () => {
    const gathering = manual();
    await using server = await start(scheme, gathering);
    const answer = await flowing(server, gathering);
    answer.socket.end(chunk("a"), "latin1");
    await others(server);
    expect(answer.heard).toHaveLength(10);
    gathering.held.shift()?.release();
    // What came before is read, and may be held in its turn.
    await answer.until(11);
    gathering.held.shift()?.release();
    await answer.until(12);
    expect(answer.heard.slice(10)).toEqual(["a", "the connection ended before the answer"]);
    expect(gathering.answers).toBe(0);
  });

  it("is not held where it comes more slowly than that, nor anew after a pause", async () => {
    const gathering = manual();
    await using server = await start(scheme, gathering);
    const answer = await flowing(server, gathering);
    gathering.held.shift()?.release();
    for (const [ms, holds] of [
      [41, 0],
      [40, 1],
      [251, 0],
      [20, 0],
    ] as const) {
      gathering.time += ms;
      const count = answer.heard.length;
      await answer.write(chunk(`after ${ms}`));
      await answer.until(count + 1);
      expect([ms, gathering.held.length]).toEqual([ms, holds]);
      gathering.held.shift()?.release();
    }
  });

  it("is whole and in order, whoever else comes, is held or leaves", async () => {
    const gathering = createGathering({ loopUse: () => 1, many: 1, lookMs: 1 });
    await using server = await start(scheme, gathering);
    const pieces = Array.from({ length: 120 }, (_, n) => `${n}.`);
    let gathered = 0;
    const one = async (n: number) => {
      const answer = await server.ask();
      await answer.write(HEAD);
      for (const [at, piece] of pieces.entries()) {
        if (at % 4 === n % 4) await sleep(15);
        await answer.write(chunk(piece));
        if (gathering.holdMs > 0 && answer.heard.length < at) gathered++;
        if (n % 5 === 0 && at === 100) {
          answer.controller?.abort(new Error("enough"));
          await answer.closed;
          return;
        }
      }
      await answer.write(END);
      await answer.until(pieces.length + 2);
      expect(answer.heard).toEqual(["head", ...pieces, "end"]);
    };
    // One after another, as the server tells requests apart by their order alone.
    const all: Promise<void>[] = [];
    for (let n = 0; n < 20; n++) all.push(one(n));
    await Promise.all(all);
    expect(gathered).toBeGreaterThan(0);
  });
});
