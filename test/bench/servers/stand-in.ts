import { createServer, type Socket } from "node:net";
import { AT_ONCE_WORD, FEW_PIECES, piecesOf, type StandInOptions } from "../stand-in-words.ts";

// A model that answers at once or at a pace, and a web service that answers at once. It shares the client's core, so its cost is minimal: its parser
// supports only requests of our clients, undici and wrk, and its answers are prepared.

const options = JSON.parse(process.argv[2] ?? "{}") as StandInOptions;
const { pieces, perSecond } = options;
const CREATED = 1_764_000_000;
const END_OF_HEAD = "\r\n\r\n";

function chunkOf(choices: object[], usage: object | null = null): string {
  return `data: ${JSON.stringify({
    id: "chatcmpl-CgPxyz0123456789",
    object: "chat.completion.chunk",
    created: CREATED,
    model: "stand-in-2026-11-01",
    system_fingerprint: "fp_44709d6fcb",
    choices,
    usage,
  })}\n\n`;
}
function choiceOf(delta: object, reason: string | null = null) {
  return [{ index: 0, delta, logprobs: null, finish_reason: reason }];
}
const USED = { prompt_tokens: 40, completion_tokens: pieces, total_tokens: 40 + pieces };

// The parts of a stream. The text of a piece is between `BEFORE` and `AFTER`.
const FIRST = chunkOf(choiceOf({ role: "assistant", content: "" }));
const [BEFORE, AFTER] = chunkOf(choiceOf({ content: "\0" })).split("\\u0000") as [string, string];
const LAST = `${chunkOf(choiceOf({}, "stop"))}${chunkOf([], USED)}data: [DONE]\n\n`;

/** A part of a chunked body. All characters are ASCII. */
function framed(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}
const STREAM_HEAD = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
function pieceOf(text: string): string {
  return framed(BEFORE + text + AFTER);
}

function wholeOf(document: object): Buffer {
  const body = JSON.stringify(document);
  return Buffer.from(
    `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
  );
}
const REPLY = piecesOf(undefined, pieces).join("");
const message = { role: "assistant", content: REPLY, refusal: null };
const WHOLE = {
  chat: wholeOf({
    id: "chatcmpl-CgPxyz0123456789",
    object: "chat.completion",
    created: CREATED,
    model: "stand-in-2026-11-01",
    choices: [{ index: 0, message, logprobs: null, finish_reason: "stop" }],
    usage: USED,
  }),
  agent: wholeOf({ reply: REPLY, usage: { input: 40, output: pieces } }),
};
const FEW = piecesOf(undefined, perSecond === undefined ? pieces : FEW_PIECES);
const AT_ONCE = Buffer.from(`${STREAM_HEAD}${framed(FIRST)}${FEW.map(pieceOf).join("")}${framed(LAST)}0\r\n\r\n`);

/** A stream that is being written. */
type Paced = { socket: Socket; texts: readonly string[]; next: number; due: number };
const EVERY_MS = perSecond === undefined ? 0 : 1_000 / perSecond;
let paced: Paced[] = [];

function begin(socket: Socket, texts: readonly string[]): void {
  socket.write(STREAM_HEAD + framed(FIRST) + pieceOf(texts[0] as string), "latin1");
  paced.push({ socket, texts, next: 1, due: performance.now() + EVERY_MS });
}

/** Writes the next piece of each due stream: only one, however late it is. */
function tick(): void {
  const now = performance.now();
  let isOver = false;
  for (const stream of paced) {
    if (stream.due > now) continue;
    const { socket, texts, next } = stream;
    const isLast = next === texts.length - 1;
    const piece = pieceOf(texts[next] as string);
    socket.write(isLast ? `${piece}${framed(LAST)}0\r\n\r\n` : piece, "latin1");
    stream.next++;
    stream.due = isLast || socket.destroyed ? Number.POSITIVE_INFINITY : stream.due + EVERY_MS;
    isOver ||= stream.due === Number.POSITIVE_INFINITY;
  }
  if (isOver) paced = paced.filter(({ due }) => due !== Number.POSITIVE_INFINITY);
}
if (perSecond !== undefined) setInterval(tick, 1);

function answer(socket: Socket, head: string, body: string): void {
  if (!head.includes("/chat/completions ")) socket.write(WHOLE.agent);
  else if (!body.includes('"stream":true')) socket.write(WHOLE.chat);
  else if (perSecond === undefined || body.includes(AT_ONCE_WORD)) socket.write(AT_ONCE);
  else begin(socket, piecesOf(/#(\d{4})/.exec(body)?.[1], pieces));
}

const server = createServer({ noDelay: true }, (socket) => {
  let text = "";
  socket.on("error", () => socket.destroy());
  socket.on("data", (bytes) => {
    text += bytes.toString("latin1");
    for (;;) {
      const end = text.indexOf(END_OF_HEAD);
      if (end === -1) return;
      const head = text.slice(0, end);
      const bodyAt = end + END_OF_HEAD.length;
      const all = bodyAt + Number(/\r\ncontent-length: *(\d+)/i.exec(head)?.[1] ?? 0);
      if (text.length < all) return;
      const body = text.slice(bodyAt, all);
      text = text.slice(all);
      answer(socket, head, body);
    }
  });
});
process.on("disconnect", () => process.exit());
server.listen({ port: 0, host: "127.0.0.1", backlog: 4_096 }, () => process.send?.(server.address()));
