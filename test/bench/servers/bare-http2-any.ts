import { createServer } from "node:http2";

// Node's HTTP/2 stream API, which answers every request with the same short text.

const TEXT = JSON.stringify({ status: "ok" });

const server = createServer();
server.on("stream", (stream) => {
  stream.on("error", () => {});
  if (stream.closed || stream.destroyed) return;
  stream.respond({ ":status": 200, "content-type": "application/json", "content-length": Buffer.byteLength(TEXT) });
  stream.end(TEXT);
});
server.on("sessionError", () => {});
process.on("disconnect", () => process.exit());
server.listen(0, "127.0.0.1", () => process.send?.(server.address()));
