// The thread of test/harness/client-apart.ts: writes each request on a separate connection, and returns all bytes until its end.
import { connect } from "node:net";
import { parentPort } from "node:worker_threads";

parentPort.on("message", ({ port, request }) => {
  const socket = connect({ host: "127.0.0.1", port, noDelay: true });
  const parts = [];
  socket.on("connect", () => socket.write(request));
  socket.on("data", (part) => parts.push(part));
  // The bytes so far count; an empty answer is not a reply.
  socket.on("error", () => {});
  socket.on("close", () => {
    const came = new Uint8Array(Buffer.concat(parts));
    parentPort.postMessage(came, [came.buffer]);
  });
});
