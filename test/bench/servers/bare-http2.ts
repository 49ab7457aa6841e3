import { createServer } from "node:http2";

// The minimum cost of HTTP/2 in Node with its stream API. Its compatibility layer is slower, so the gateway is not compared with that.

const server = createServer();
server.on("stream", (stream) => {
  const parts: Buffer[] = [];
  stream.on("data", (part: Buffer) => parts.push(part));
  stream.on("end", () => {
    const text = JSON.stringify(JSON.parse(Buffer.concat(parts).toString()));
    stream.respond({
      ":status": 200,
      "content-type": "application/json",
      "content-length": Buffer.byteLength(text),
    });
    stream.end(text);
  });
});
process.on("disconnect", () => process.exit());
server.listen(0, "127.0.0.1", () => process.send?.(server.address()));
