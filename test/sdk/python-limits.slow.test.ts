import { createHash } from "node:crypto";
import { once } from "node:events";
import type { Socket } from "node:net";
import { describe, expect, test } from "vitest";
import { answerServer, event, events, json, keysOf } from "./answers.ts";
import { type Form, forms, runForm } from "./python.ts";
import { forever, rawServer } from "./raw-server.ts";
import { serve } from "./serve.ts";

function run(form: Form, python: string, url: string, code: string, timeout = 0.5) {
  return runForm(
    form,
    python,
    `gateway = AsyncGateway(url="${url}", key="k", rpc_token="r", max_retries=0, timeout=${timeout})\n${code}\nawait gateway.close()`,
  );
}
const READ = "show((await failing(lambda: gateway.skills.list()))['class'])";

/** Writes a text one character at a time, while the other side accepts it. */
function drip(socket: Socket, text: string): void {
  let next = 0;
  const timer = setInterval(() => socket.write(text[next++ % text.length] as string), 50);
  socket.on("close", () => clearInterval(timer));
}
const chunked = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";

const ENDLESS: [string, (socket: Socket) => void][] = [
  ["a head that drips", (socket) => drip(socket, `HTTP/1.1 200 OK\r\nX: ${"y".repeat(60_000)}`)],
  [
    "a body that drips",
    (socket) => {
      socket.write("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 60000\r\n\r\n");
      drip(socket, " ");
    },
  ],
  [
    "responses that only continue",
    (socket) => forever(socket, Buffer.from("HTTP/1.1 100 Continue\r\n\r\n".repeat(50))),
  ],
  ["dripped responses that only continue", (socket) => drip(socket, "HTTP/1.1 100 Continue\r\n\r\n")],
  [
    "trailers without an end",
    (socket) => {
      socket.write(`${chunked}2\r\n{}\r\n0\r\n`);
      forever(socket, Buffer.from("x: y\r\n".repeat(50)));
    },
  ],
  [
    "trailers that drip",
    (socket) => {
      socket.write(`${chunked}2\r\n{}\r\n0\r\n`);
      drip(socket, "x: y\r\n");
    },
  ],
  ["nothing", () => {}],
];

describe.concurrent.each(forms)("the limits of %s for Python %s", (form, _, python) => {
  test.each(ENDLESS)("end a call that gets %s", async (_, answer) => {
    await using server = await rawServer((socket) => answer(socket));
    const [failure] = await run(form, python, server.url, READ);
    expect(["TimedOutError", "ConnectionFailedError"]).toContain(failure);
  });

  test("end a call whose turn never ends", async () => {
    const running = json(202, { status: "running", turn_id: "turn_1" });
    await using server = await answerServer(Array(1_000).fill(running));
    const [failure] = await run(
      form,
      python,
      server.url,
      'show(await failing(lambda: gateway.chat.send(message="x")))',
      5,
    );
    expect(failure).toMatchObject({
      class: "TimedOutError",
      detail: "The turn has not ended within 5 s. Read it with `turns.get`.",
      turn_id: "turn_1",
      idempotency_key: keysOf(server.seen)[0],
    });
    // The pauses grow.
    expect(server.seen.length).toBeLessThan(10);
  });

  test("end a stream that repeats an event", async () => {
    await using server = await answerServer(Array(50).fill(events("end", event("turn.started", "e1"))));
    const [failure] = await run(
      form,
      python,
      server.url,
      `
import agent_gateway._async.turn_stream as turn_stream
turn_stream._ATTEMPTS = 1
async def read():
    return [one async for one in gateway.turns.events("turn_1")]
show(await failing(read))
`,
      20,
    );
    expect(failure).toMatchObject({
      class: "ConnectionFailedError",
      detail: "The stream was lost several times in a row.",
    });
    expect(server.seen.length).toBeLessThan(15);
  });

  test("end a WebSocket whose server sends pings and reads nothing", async () => {
    const ping = Buffer.concat([Buffer.from([0x89, 125]), Buffer.alloc(125, "x")]);
    await using server = await rawServer((socket, request) => {
      const key = /sec-websocket-key: (\S+)/i.exec(request)?.[1] ?? "";
      const accept = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
      socket.pause();
      socket.write(
        `HTTP/1.1 101 Switching\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
      );
      forever(socket, Buffer.concat(Array(500).fill(ping)));
    });
    const shown = await run(
      form,
      python,
      server.url,
      `
import faulthandler
faulthandler.dump_traceback_later(15, exit=True)
socket = gateway.rpc.connect()
show((await failing(lambda: socket.agent.list()))["class"])
await socket.close()
show("closed")
`,
      2,
    );
    expect(["TimedOutError", "ConnectionFailedError"]).toContain(shown[0]);
    expect(shown[1]).toBe("closed");
  });

  test("end when the client is closed: later calls fail, and no connection remains open", async () => {
    const closed: Promise<unknown>[] = [];
    await using server = await serve(async (_, res) => {
      if (res.socket) closed.push(once(res.socket, "close"));
      res.writeHead(200, { "content-type": "text/event-stream" }).write(event("turn.started", "1"));
      setTimeout(() => res.end(event("turn.completed", "2")), 50);
    });
    const shown = await run(
      form,
      python,
      server.url,
      `
other = gateway.with_options(timeout=3)
seen = []
async for one in gateway.turns.events("turn_1"):
    seen.append(one.event)
    await other.close()
show(seen, len(gateway._transport._idle))
for call in (gateway.skills.list, other.skills.list, gateway.rpc.agent.list, gateway.rpc.connect().agent.list):
    show((await failing(call))["text"].split(": ")[-1])
async with AsyncGateway(url="${server.url}", key="k") as last:
    pass
show((await failing(last.skills.list))["class"])
`,
      20,
    );
    expect(shown).toEqual([
      [["turn.started", "turn.completed"], 0],
      ...Array(4).fill("The client was closed."),
      "ClosedError",
    ]);
    await Promise.all(closed);
    expect(closed).toHaveLength(1);
  });

  test("refuse invalid options, and show no password", async () => {
    const code = `
def refusal(**options):
    try:
        return AsyncGateway(**{"key": "k", **options})._settings.url
    except ValueError as error:
        return str(error)
for timeout in (0, -1, float("nan"), float("inf"), None, "5", True, 10**400):
    show(refusal(timeout=timeout)[:80])
for max_retries in (-1, None, 1.5, True):
    show(refusal(max_retries=max_retries))
for url in ("ftp://user:PW@host/", "user:PW@host/a", "http://user:PW@host:99999/", "http://us@er:P#W@host:99999/?key=PW", "http://h:0/?key=PW#PW", "http://a..b", "http://" + "a" * 64, "http://x\\x00y", 5):
    show(refusal(url=url))
show(refusal(key=b"k"), refusal(key=5), refusal(url="http://user:PW@host:1/a/?key=PW"))
try:
    AsyncGateway(key="k").with_options(timeout=0)
except ValueError as error:
    show(str(error))
`;
    const shown = await runForm(form, python, code);
    const seconds = "Pass a number of seconds above 0, and at most 1,000,000.";
    const form1 = "Write it as http://HOST:PORT or https://HOST";
    const unlike = (url: string, near: string) =>
      `The gateway's url "${url}" does not begin with http:// or https://. ${form1}, such as http://${near}.`;
    const noUrl = (url: string) => `The gateway's url "${url}" is not a url. ${form1}.`;
    const retries = (value: string) => `\`max_retries\` is ${value}. Pass a whole number of at least 0.`;
    expect(shown).toEqual([
      ...["0", "-1", "nan", "inf", "None", "'5'", "True"].map((value) =>
        `\`timeout\` is ${value}. ${seconds}`.slice(0, 80),
      ),
      expect.stringMatching(/^`timeout` is 10{50}/),
      ...["-1", "None", "1.5", "True"].map(retries),
      unlike("ftp://host/", "host/"),
      unlike("host/a", "host/a"),
      noUrl("http://host:99999/"),
      noUrl("http://host:99999/"),
      noUrl("http://h:0/"),
      noUrl("http://a..b"),
      noUrl(`http://${"a".repeat(64)}`),
      noUrl("http://x y"),
      `The gateway's url is not text. ${form1}.`,
      ["`key` is not text.", "`key` is not text.", "http://host:1/a"],
      `\`timeout\` is 0. ${seconds}`,
    ]);
  });
});
