import type { IncomingMessage, ServerResponse } from "node:http";

function answer(res: ServerResponse, value: unknown): void {
  const text = JSON.stringify(value);
  res.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) }).end(text);
}

/** Starts a stream and sends nothing more. */
function stream(res: ServerResponse): void {
  res.writeHead(200, { "content-type": "text/event-stream" }).write(":\n\n");
}

/** Reads a body, parses it, writes it back. */
export function echo(req: IncomingMessage, res: ServerResponse): void {
  const parts: Buffer[] = [];
  req.on("data", (part: Buffer) => parts.push(part));
  req.on("end", () => {
    const value: unknown = JSON.parse(Buffer.concat(parts).toString());
    if (req.url === "/stream") stream(res);
    else answer(res, value);
  });
}
