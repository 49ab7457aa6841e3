// Opens a number of connections of one kind and reports when they were closed: `node slow-requests.mjs <port> <token> <kind> <count> <every ms>`.
// `idle` sends one request and then nothing, `silent` never sends anything, `head` and `body` send theirs byte by byte.
import { connect } from "node:net";

const [port, token, kind, count, everyMs] = process.argv.slice(2);
const AT_ONCE = 50;
const BEGIN = {
  idle: "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
  silent: "",
  head: "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ",
  body: `POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer ${token}\r\nContent-Length: 8192\r\n\r\n`,
}[kind];
const IS_SLOW = kind === "head" || kind === "body";

const closedAfter = [];
const answers = [];
function open() {
  return new Promise((resolve) => {
    const socket = connect(Number(port), "127.0.0.1");
    let slow;
    const began = performance.now();
    socket.on("connect", () => {
      if (BEGIN !== "") socket.write(BEGIN);
      if (IS_SLOW) slow = setInterval(() => socket.writable && socket.write("x"), Number(everyMs));
      if (kind !== "idle") resolve();
    });
    socket.on("data", (data) => {
      const [, status, requestId] = /^HTTP\/1.1 (\d+) .*?x-request-id: (\S+)/is.exec(data.toString("latin1")) ?? [];
      answers.push({ status: Number(status), requestId });
      if (kind === "idle") resolve();
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearInterval(slow);
      closedAfter.push(performance.now() - began);
      if (closedAfter.length < Number(count)) return;
      console.log(JSON.stringify({ first: Math.min(...closedAfter), answers }));
      process.exit(0);
    });
  });
}

for (let left = Number(count); left > 0; left -= AT_ONCE) {
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, left) }, open));
}
console.log(JSON.stringify({ open: Number(count), closed: closedAfter.length, answers }));
process.on("SIGUSR2", () => console.log(JSON.stringify({ closed: closedAfter.length })));
