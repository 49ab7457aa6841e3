import { connect } from "node:net";
import { type Figure, type Gate, measure } from "./figures.ts";
import { startGateway, untilAnswers } from "./gateways.ts";
import type { BenchOptions } from "./options.ts";

const PLACES = {
  "/rpc": { figure: "unauthenticated body that /rpc reads before the 401", atMost: 4 * 1024 },
  "/hooks/wake": { figure: "unauthenticated body that /hooks/wake waits for", atMost: 0 },
} as const;
type Path = keyof typeof PLACES;
const MOST = 64 * 1024;
const PART = 32;
const EVERY_MS = 2;
const ATTEMPTS = 10;

/**
 * P14: the part of an unauthenticated body that is read. The body is sent in small parts, one after another, until the answer arrives: the last part
 * before that was too much. A late answer increases the figure, never reduces it, so the lowest of several is valid.
 */
async function measureStranger({ say }: BenchOptions): Promise<Figure[]> {
  say("P14: bodies of strangers");
  return [await measureAt("/rpc"), await measureAt("/hooks/wake")];
}

async function measureAt(path: Path): Promise<Figure> {
  await using gateway = await startGateway({ webhooks: {} });
  await untilAnswers(`${gateway.url}/readyz`);
  const port = Number(new URL(gateway.url).port);
  const { figure, atMost } = PLACES[path];
  const sent: number[] = [];
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) sent.push(await trickle(port, path));
  // Some servers answer before the first part, others after a part that was too much.
  return measure([atMost === 0 ? Math.min(...sent) : Math.min(...sent) - PART], {
    gate: "P14",
    figure,
    unit: "bytes",
    bound: { atMost },
    note: `in parts of ${PART} bytes, the lowest of ${ATTEMPTS}`,
  });
}

function headOf(path: Path): string {
  return [
    `POST ${path} HTTP/1.1`,
    "Host: 127.0.0.1",
    "Authorization: Bearer wrong-token-of-a-stranger",
    "Content-Type: application/json",
    "Transfer-Encoding: chunked\r\n\r\n",
  ].join("\r\n");
}

function chunkOf(bytes: number): string {
  return `${bytes.toString(16)}\r\n${" ".repeat(bytes)}\r\n`;
}

/** Sends a body slowly; resolves with the number of bytes sent before the answer. */
function trickle(port: number, path: Path): Promise<number> {
  return new Promise((resolve, reject) => {
    let sent = 0;
    const socket = connect({ host: "127.0.0.1", port, noDelay: true }).on("error", reject);
    const timer = setInterval(() => {
      if (sent >= MOST) socket.destroy(new Error("the gateway reads on and on"));
      socket.write(chunkOf(PART));
      sent += PART;
    }, EVERY_MS);
    socket.write(headOf(path));
    socket.once("close", () => clearInterval(timer));
    socket.once("data", (answer) => {
      if (!answer.toString("latin1").startsWith("HTTP/1.1 401 ")) reject(new Error(`answered ${answer}`));
      resolve(sent);
      socket.destroy();
    });
  });
}

export const STRANGER_GATE: Gate = { gate: "P14", figure: "unauthenticated bodies", measure: measureStranger };
