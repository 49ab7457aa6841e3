import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { deflateRawSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { shareGateway } from "#test/harness/gateway.ts";
import { clientFrame, closeCode, upgrade } from "./raw-socket.ts";
import { openSocket } from "./socket.ts";

const LIMIT = 64 * 1024;
const gateway = await shareGateway({ config: { limits: { rpcBody: LIMIT } } });

function open() {
  return upgrade(gateway.url, { headers: { authorization: `Bearer ${gateway.rpcToken}` } });
}
/** The close code of the gateway after these raw bytes. */
async function codeAfter(...bytes: (Buffer | string)[]): Promise<number | undefined> {
  const { socket, rest } = await open();
  const code = closeCode(socket, rest);
  for (const chunk of bytes) {
    if (socket.write(chunk)) continue;
    await Promise.race([once(socket, "drain"), code]);
  }
  const closed = await code;
  socket.destroy();
  return closed;
}
const call = JSON.stringify({ jsonrpc: "2.0", method: "agent.list", id: 1 });
const bomb = deflateRawSync(Buffer.alloc(10 * 1024 * 1024));

describe("a frame that is not a text message of the protocol closes the connection with a code, and affects no other", () => {
  test.each<[string, (Buffer | string)[], number]>([
    ["a binary message", [clientFrame(call, { opcode: 2 })], 1003],
    ["a binary message in parts", [clientFrame("a", { opcode: 2, fin: false }), clientFrame("b", { opcode: 0 })], 1003],
    ["invalid UTF-8", [clientFrame(Buffer.from([0x7b, 0xff, 0x7d]))], 1007],
    ["half a character at the end", [clientFrame(Buffer.from([0xe2, 0x82]))], 1007],
    ["a surrogate written as UTF-8", [clientFrame(Buffer.from([0xed, 0xa0, 0x80]))], 1007],
    ["a message past limits.rpcBody", [clientFrame("x".repeat(LIMIT + 1))], 1009],
    ["a length past it, with nothing behind", [clientFrame("", { length: LIMIT + 1 })], 1009],
    ["a length of more than 2^53", [clientFrame("", { length: Number.MAX_SAFE_INTEGER * 4 })], 1009],
    [
      "parts that are past it together",
      Array.from({ length: 5 }, (_, n) => clientFrame("x".repeat(LIMIT / 4), { opcode: n === 0 ? 1 : 0, fin: false })),
      1009,
    ],
    [
      "more parts than a message may have",
      [
        clientFrame("[", { fin: false }),
        ...Array.from({ length: 2000 }, () => clientFrame("", { opcode: 0, fin: false })),
      ],
      1008,
    ],
    ["a compressed frame", [clientFrame(bomb, { rsv: 0x40 })], 1002],
    ["reserved bits", [clientFrame(call, { rsv: 0x30 })], 1002],
    ["an unmasked frame", [clientFrame(call, { mask: false })], 1002],
    ["an unknown opcode", [clientFrame(call, { opcode: 5 })], 1002],
    ["a continuation of nothing", [clientFrame(call, { opcode: 0 })], 1002],
    ["a new message inside another", [clientFrame("a", { fin: false }), clientFrame("b")], 1002],
    ["a ping in parts", [clientFrame("a", { opcode: 9, fin: false })], 1002],
    ["a ping that is too long", [clientFrame("x".repeat(126), { opcode: 9 })], 1002],
    ["a close of one byte", [clientFrame("x", { opcode: 8 })], 1002],
    ["a close with a reserved code", [clientFrame(Buffer.from([0x03, 0xed]), { opcode: 8 })], 1002],
    ["HTTP where frames are spoken", ["GET / HTTP/1.1\r\nHost: x\r\n\r\n"], 1002],
  ])("%s", async (_, bytes, code) => {
    using other = await openSocket(gateway);
    expect(await codeAfter(...bytes)).toBe(code);
    await other.call("agent.list");
    await gateway.logged("socket.closed", { by: String(code) });
  });

  test("and the frames behind it are not answered", async () => {
    const { socket, rest } = await open();
    const code = closeCode(socket, rest);
    let answers = 0;
    socket.on("data", (data) => (answers += data.toString("latin1").split('"result"').length - 1));
    socket.write(
      Buffer.concat([clientFrame(call), clientFrame(call, { opcode: 2 }), clientFrame(call), clientFrame(call)]),
    );
    expect(await code).toBe(1003);
    expect(answers).toBe(1);
  });
});

describe("a text message", () => {
  test("may arrive in parts, with control frames between them, and byte by byte", async () => {
    const { socket } = await open();
    let read = "";
    socket.on("data", (data) => (read += data.toString("latin1")));
    socket.resume();
    const frames = [
      clientFrame(call.slice(0, 5), { fin: false }),
      clientFrame("are you there", { opcode: 9 }),
      clientFrame(call.slice(5, 9), { opcode: 0, fin: false }),
      clientFrame(call.slice(9), { opcode: 0 }),
    ];
    for (const byte of Buffer.concat(frames)) {
      socket.write(Buffer.from([byte]));
      await sleep(0);
    }
    await expect.poll(() => read).toContain('"agents"');
    expect(read).toContain(`${String.fromCharCode(0x8a, 13)}are you there`);
    socket.destroy();
  });

  test("of exactly limits.rpcBody is accepted, and answered completely whatever its characters", async () => {
    using socket = await openSocket(gateway);
    const shell = JSON.stringify({ jsonrpc: "2.0", method: "", id: 1 });
    socket.ws.send(shell.replace('""', `"${"x".repeat(LIMIT - shell.length)}"`));
    expect((await socket.until(() => socket.responses[0])).error?.code).toBe(-32601);
    const text = "ä€\u{1f600}\u0000\u2028".repeat(3_000);
    await socket.call("agent.sendMessage", { agentName: "main", message: text, sessionId: "letters" });
    expect((await socket.pushed("turn.completed")).reply).toBe(text);
  });

  test("that is not JSON gets a parse error, and the connection remains open", async () => {
    using socket = await openSocket(gateway);
    for (const text of ["", "{", "\ufeff{}", "[".repeat(10_000), "nul"]) {
      const before = socket.responses.length;
      socket.ws.send(text);
      const { id, error } = await socket.until(() => socket.responses[before]);
      expect(id).toBeNull();
      expect([-32700, -32600]).toContain(error?.code);
    }
    await socket.call("agent.list");
  });
});
