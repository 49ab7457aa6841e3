import { createServer } from "node:http";

// What Node itself costs: reads a body, parses it, writes it back. What the gateway does beyond this is its own.

const server = createServer((req, res) => {
  const parts: Buffer[] = [];
  req.on("data", (part: Buffer) => parts.push(part));
  req.on("end", () => {
    const text = JSON.stringify(JSON.parse(Buffer.concat(parts).toString()));
    res.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) }).end(text);
  });
});
process.on("disconnect", () => process.exit());
server.listen(0, "127.0.0.1", () => process.send?.(server.address()));
