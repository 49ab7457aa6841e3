import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { describe, expect, test } from "vitest";
import { createRandom } from "#test/harness/random.ts";
import { type Head, HeadMemory, readHead } from "#wire/http/h1-head.ts";

const POST = [
  "POST /rpc?a=b HTTP/1.1",
  "Host: 127.0.0.1:18789",
  "Authorization: Bearer abc.DEF-123",
  "Content-Type: application/json",
  "User-Agent: some-client/1.0 (x; y)",
  "Accept: */*",
  "Connection: keep-alive",
  "Content-Length: 11",
];
const BODY = '{"a":"bcd"}';
const requestOf = (lines: readonly string[], body = BODY): Buffer =>
  Buffer.from(`${lines.join("\r\n")}\r\n\r\n${body}`, "latin1");

type Seen = Pick<Head, "method" | "url" | "rawHeaders"> & { headers: IncomingHttpHeaders; body: string };

/** What Node's own parser makes of bytes: the requests it finds, or that it finds fault with them. */
const createOracle = async () => {
  let seen: Seen[] = [];
  let faults = 0;
  // As our listeners are: the front asks for a Host.
  const server = createServer({ requireHostHeader: false }, (req, res) => {
    const { method = "", url = "", headers, rawHeaders } = req;
    let body = "";
    req.setEncoding("latin1").on("data", (part) => {
      body += part;
    });
    req.on("end", () => {
      seen.push({ method, url, headers, rawHeaders, body });
      res.end();
    });
  });
  server.on("clientError", (_error, socket) => {
    faults++;
    socket.destroy();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    async ask(bytes: Buffer): Promise<{ seen: Seen[]; faults: number }> {
      [seen, faults] = [[], 0];
      const socket = connect(port, "127.0.0.1").on("error", () => {});
      socket.write(bytes);
      await Promise.race([once(socket, "data"), once(socket, "close")]).catch(() => {});
      socket.destroy();
      return { seen, faults };
    },
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
    },
  };
};

describe("a plain head", () => {
  test("is read as what it says", () => {
    expect(readHead(requestOf(POST))).toMatchObject({
      method: "POST",
      url: "/rpc?a=b",
      headers: { host: "127.0.0.1:18789", authorization: "Bearer abc.DEF-123", "content-length": "11" },
      length: 11,
      end: requestOf(POST).length - BODY.length,
    });
  });

  const without = (name: string) => POST.filter((line) => !line.startsWith(name));
  test.each<[string, readonly string[]]>([
    ["is of another version", ["POST /rpc HTTP/1.0", ...POST.slice(1)]],
    ["has another method", ["PUT /rpc HTTP/1.1", ...POST.slice(1)]],
    ["has the form for proxies", ["POST http://a/rpc HTTP/1.1", ...POST.slice(1)]],
    ["has a target with a fragment", ["POST /rpc#a HTTP/1.1", ...POST.slice(1)]],
    ["has two spaces before its target", ["POST  /rpc HTTP/1.1", ...POST.slice(1)]],
    ["names a header twice", [...POST, "X-A: 1", "x-a: 2"]],
    ["names its length twice", [...POST, "content-length: 11"]],
    ["is chunked", [...without("Content-Length"), "Transfer-Encoding: chunked"]],
    ["is chunked and has a length", [...POST, "Transfer-Encoding: chunked"]],
    ["wants another protocol", [...without("Connection"), "Connection: Upgrade", "Upgrade: websocket"]],
    ["closes the connection", [...without("Connection"), "Connection: close"]],
    ["has a cookie to set, which Node reads as a list", [...POST, "Set-Cookie: a=b"]],
    ["waits to be asked", [...POST, "Expect: 100-continue"]],
    ["has a space before a colon", [...POST, "X-A : 1"]],
    ["goes on with a line that begins with a space", [...POST, "X-A: 1", " 2"]],
    ["has a tab in a value", [...POST, "X-A: 1\t2"]],
    ["has an empty value", [...POST, "X-A:"]],
    ["has a value that ends in a space", [...POST, "X-A: 1 "]],
    ["has a value beyond ASCII", [...POST, "X-A: \xe4"]],
    ["has a bare line feed in a value", [...POST, "X-A: 1\nX-B: 2"]],
    ["has a name with an underscore", [...POST, "__proto__: 1"]],
    ["has a length with a sign", [...without("Content-Length"), "Content-Length: +11"]],
    ["has a length with a leading zero", [...without("Content-Length"), "Content-Length: 011"]],
    ["has a length in two parts", [...without("Content-Length"), "Content-Length: 11, 11"]],
    ["has more headers than most", [...POST, ...Array.from({ length: 64 }, (_, n) => `X-${n}: 1`)]],
    ["is longer than most", [...POST, `X-A: ${"a".repeat(4096)}`]],
  ])("is none when it %s", (_, lines) => {
    expect(readHead(requestOf(lines))).toBeUndefined();
  });

  test("is never read otherwise than Node's own parser reads it, whatever is changed of it", {
    timeout: 60_000,
  }, async () => {
    await using oracle = await createOracle();
    const random = createRandom(20);
    const pieces = [
      "\r\n",
      "\n",
      "\r",
      " ",
      ":",
      "\t",
      "\0",
      "0",
      "x",
      "\x7f",
      "\xe9",
      ",",
      ";",
      "\r\n ",
      "\r\n\r\n",
      "Content-Length: 3\r\n",
      "Transfer-Encoding: chunked\r\n",
      "HTTP/1.1",
    ];
    let plain = 0;
    for (let n = 0; n < 4_000; n++) {
      let text = requestOf(POST).toString("latin1");
      for (let times = 1 + random.below(2); times > 0; times--) {
        const at = random.below(text.length - BODY.length);
        const cut = random.chance(0.5) ? 0 : 1 + random.below(3);
        text = text.slice(0, at) + (random.chance(0.7) ? random.pick(pieces) : "") + text.slice(at + cut);
      }
      const bytes = Buffer.from(text, "latin1");
      const head = readHead(bytes);
      // What is too short or too long for it is handed on, as it is not plain.
      if (!head || bytes.length !== head.end + head.length) continue;
      plain++;
      const { method, url, headers, rawHeaders } = head;
      const body = bytes.toString("latin1", head.end);
      expect(await oracle.ask(bytes), JSON.stringify(text)).toEqual({
        seen: [{ method, url, headers, rawHeaders, body }],
        faults: 0,
      });
    }
    // Else nothing was compared.
    expect(plain).toBeGreaterThan(300);
  });
});

describe("the memory of a connection's last head", () => {
  test("answers what a fresh look would, whatever comes next", () => {
    const random = createRandom(7);
    for (let round = 0; round < 300; round++) {
      const memory = new HeadMemory();
      let lines = [...POST];
      for (let n = 0; n < 20; n++) {
        if (random.chance(0.3)) lines = random.chance(0.5) ? [...POST].reverse() : [...POST];
        if (random.chance(0.2)) lines = lines.filter((line) => !line.startsWith("Content-Length"));
        const length = random.below(10 ** (1 + random.below(7)));
        const sent = lines.map((line) => (line.startsWith("Content-Length") ? `Content-Length: ${length}` : line));
        let bytes = requestOf(sent);
        if (random.chance(0.3)) {
          bytes = Buffer.from(bytes);
          bytes[random.below(bytes.length)] = random.below(256);
        }
        if (random.chance(0.1)) bytes = bytes.subarray(0, random.below(bytes.length));
        expect(memory.read(bytes)).toEqual(readHead(bytes));
      }
    }
  });

  test("takes the same head for the same", () => {
    const memory = new HeadMemory();
    const first = memory.read(requestOf(POST));
    expect(memory.read(requestOf(POST))).toBe(first);
    const longer = POST.map((line) => line.replace("Length: 11", "Length: 12"));
    expect(memory.read(requestOf(longer))).toMatchObject({ length: 12, headers: { "content-length": "12" } });
    expect(first).toMatchObject({ length: 11, headers: { "content-length": "11" } });
  });
});
