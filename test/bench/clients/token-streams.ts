import { Agent, request } from "node:http";
import { setTimeout as pause } from "node:timers/promises";
import { piecesOf } from "../stand-in-words.ts";

// A client that reads streams of pieces and checks each of them. It reports that it is ready, starts its streams one after another over `rampMs`, and
// reports when all have ended.

export type TokenOptions = {
  url: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  /** `{stream}` is replaced by the stream's number, in four digits. */
  body: string;
  /** The number of concurrent streams, and the number of successive streams on each connection. */
  streams: number;
  turns: number;
  pieces: number;
  rampMs: number;
  /** The expected rate of the pieces; undefined: at once. */
  perSecond?: number;
  /** The stand-in names streams; without it all of them are the same. */
  isNamed: boolean;
  /** The beginnings of an event with a piece, and of its text. */
  event: string;
  text: string;
};
export type TokenReport = {
  pieces: number;
  /** The number of events. */
  events: number;
  /** The number of streams without an answer, with a broken connection or with wrong content. */
  wrong: number;
  /** The median time from a request to its first piece, in microseconds. */
  first: number;
};

const options = JSON.parse(process.argv[2] ?? "{}") as TokenOptions;
const { url, path, headers, streams, turns, pieces: expectedPieces, rampMs, perSecond } = options;
const END = "\n\n";
const STUCK_MS = 60_000 + rampMs + (perSecond === undefined ? 0 : (expectedPieces * 1_000) / perSecond);

const agent = new Agent({ keepAlive: true });
const firsts: number[] = [];
let [pieces, events, wrong] = [0, 0, 0];

/** Reads one stream to its end. */
function read(name: string): Promise<void> {
  return new Promise((resolve) => {
    const expected = piecesOf(options.isNamed ? name : undefined, expectedPieces).join("");
    const began = performance.now();
    let [rest, got] = ["", 0];
    const take = (text: string): void => {
      if (text === "") return;
      if (got === 0) firsts.push((performance.now() - began) * 1_000);
      events++;
      if (!expected.startsWith(text, got)) wrong++;
      got += text.length;
    };
    const call = request(url + path, { method: "POST", agent, headers, signal: AbortSignal.timeout(STUCK_MS) });
    call.on("response", (response) => {
      if (response.statusCode !== 200) wrong++;
      response.setEncoding("latin1").on("data", (part: string) => {
        const all = (rest + part).split(END);
        rest = all.pop() as string;
        for (const event of all) {
          if (!event.includes(options.event)) continue;
          const from = event.indexOf(options.text) + options.text.length;
          take(event.slice(from, event.indexOf('"', from)));
        }
      });
      response.on("error", () => {});
    });
    call.on("error", () => {});
    call.on("close", () => {
      if (got !== expected.length) wrong++;
      pieces += Math.floor((got * expectedPieces) / expected.length);
      resolve();
    });
    call.end(options.body.replace("{stream}", name));
  });
}

async function readAll(n: number): Promise<void> {
  await pause((n * rampMs) / streams);
  for (let turn = 0; turn < turns; turn++) await read(String(n).padStart(4, "0"));
}

process.once("message", async () => {
  await Promise.all(Array.from({ length: streams }, (_, n) => readAll(n)));
  firsts.sort((a, b) => a - b);
  process.send?.({ pieces, events, wrong, first: firsts[firsts.length >> 1] ?? Number.NaN } satisfies TokenReport);
});
process.on("disconnect", () => process.exit());
process.send?.("ready");
