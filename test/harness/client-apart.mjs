// The thread of test/harness/client-apart.ts: writes each request on a connection of its own, and gives back all that came until its end.
import { connect } from "node:net";
import { parentPort } from "node:worker_threads";

parentPort.on("message", ({ port, request }) => {
  const socket = connect({ host: "127.0.0.1", port, noDelay: true });
  const parts = [];
  socket.on("connect", () => socket.write(request));
  socket.on("data", (part) => parts.push(part));
  // What had come before counts; nothing is a reply that is none.
  socket.on("error", () => {});
  socket.on("close", () => {
    const came = new Uint8Array(Buffer.concat(parts));
    parentPort.postMessage(came, [came.buffer]);
  });
});
