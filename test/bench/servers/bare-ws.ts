import type { AddressInfo } from "node:net";
import { WebSocketServer } from "ws";

// The minimum cost of `ws`: parses each message and writes it back.

const server = new WebSocketServer({ port: 0, host: "127.0.0.1", clientTracking: false, perMessageDeflate: false });
server.on("connection", (socket) => {
  socket.on("message", (data: Buffer) => socket.send(JSON.stringify(JSON.parse(data.toString()))));
});
process.on("disconnect", () => process.exit());
server.on("listening", () => process.send?.(server.address() as AddressInfo));
