// Opens so many WebSockets and keeps them: `node open-sockets.mjs <port> <token> <count>`. It says `open` when all stand.
import { connect } from "node:net";

const [port, token, count] = [Number(process.argv[2]), process.argv[3], Number(process.argv[4])];
const AT_ONCE = 50;
const head = `GET /rpc/ws HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`;
const request = `${head}Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer ${token}\r\n\r\n`;

const open = () =>
  new Promise((resolve, reject) => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", reject);
    socket.on("close", () => process.exit(2));
    socket.once("data", (data) => {
      if (!data.toString("latin1").startsWith("HTTP/1.1 101")) reject(new Error(String(data)));
      // Pings are answered, as a client's library does.
      socket.on("data", () => socket.write(Buffer.from([0x8a, 0x80, 0, 0, 0, 0])));
      resolve();
    });
    socket.write(request);
  });

for (let left = count; left > 0; left -= AT_ONCE) {
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, left) }, open));
}
console.log("open");
