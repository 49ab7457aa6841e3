import { writeFileSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { startMock } from "#cli/mock.ts";
import { emptyFolder } from "./cli.ts";
import { callsOf } from "./every-call.ts";
import { printed } from "./in-process.ts";

/** Starts a server that is not a gateway. */
async function startServer(answer: RequestListener): Promise<string> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function answering(body: unknown, status = 200): RequestListener {
  return (_, response) => response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
}

test.each([["'; touch pwned; '"], ["\u001b]0;x\u0007"], [""], ["a b"], [5], [null], [undefined]])(
  "open prints no link with the code %j, which a gateway does not create",
  async (code) => {
    const url = await startServer(answering({ code, expires_at: "2026-11-28T00:00:00Z" }, 201));
    expect(await printed(["open", "--url", url, "--key", "key-of-test"])).toEqual({
      out: "",
      err: `The server at ${url} sent an answer that is not from a gateway.\nNext: name the gateway's own address: --url URL\n`,
      code: 3,
    });
  },
);

const mock = await startMock("127.0.0.1", 0);
const folder = emptyFolder(afterAll);
writeFileSync(join(folder, "payload.json"), '{"status":"firing"}');

/** The next values are parts of an answer, each in the place of the part with that number. */
let odd: { at: number; value: unknown }[] = [];

/** A copy with some parts replaced, or omitted if the value is undefined. */
function mangled(value: unknown, count = { parts: 0 }): unknown {
  count.parts += 1;
  const found = odd.find(({ at }) => at === count.parts % 40);
  if (found) return found.value;
  if (Array.isArray(value)) return value.map((item) => mangled(item, count));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, mangled(item, count)]));
}

const server = createServer(async (req, res) => {
  const body = (await req.setEncoding("utf8").toArray()).join("");
  const answer = await fetch(mock + req.url, {
    method: req.method ?? "GET",
    headers: { "content-type": "application/json", accept: req.headers.accept ?? "*/*" },
    ...(body === "" ? {} : { body }),
  });
  const [type, text] = [answer.headers.get("content-type") ?? "", await answer.text()];
  res.writeHead(answer.status, { "content-type": type, connection: "close" });
  if (/json/.test(type)) {
    const example = JSON.parse(text);
    const isRpc = req.url === "/rpc";
    return res.end(JSON.stringify(isRpc ? { ...example, result: mangled(example.result) } : mangled(example)));
  }
  res.end(text.replace(/^data: (.*)$/gm, (_, data) => `data: ${JSON.stringify(mangled(JSON.parse(data)))}`));
});
await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const tokens = ["--key", "key-of-test", "--rpc-token", "rpc-of-test", "--webhook-token", "hook-of-test"];
/** Those that read a WebSocket, which the mock does not have, or pause between retries. */
const OTHERS = ["deliveries tail", "events tail"];

const values = fc.constantFrom<unknown>(undefined, null, 5, true, "x", "", {}, [], [null], [5], { x: null }, -1e300);
test.each(
  Object.entries(callsOf(join(folder, "payload.json")))
    .filter(([command]) => !OTHERS.includes(command))
    .flatMap(([command, calls]) => calls.map((call) => [[...command.split(" "), ...call]])),
)("%j reports an answer of another shape in a sentence", async (call) => {
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ at: fc.integer({ min: 1, max: 12 }), value: values }), { minLength: 1, maxLength: 3 }),
      fc.constantFrom([], [], ["-q"], ["--json"]),
      async (given, how) => {
        odd = given;
        const { out, err } = await printed([...call, ...how, ...tokens, "--url", url]);
        expect(out + err).not.toMatch(
          /Cannot read|Cannot convert|is not a function|is not iterable|is not an object|\(reading|Invalid time|^ +at /m,
        );
      },
    ),
    { numRuns: 12, examples: [[[{ at: 6, value: -1e300 }], ["-q"]]] },
  );
});

test("sessions show prints each tool call with its arguments and its result, in one line and cut", async () => {
  const at = "2026-11-21T08:54:31.123Z";
  const calls = [
    {
      tool: "find_order",
      ok: true,
      ms: 12.4,
      at,
      arguments: '{"order":\n"A-1"}',
      result: `paid\u001b[2J${"x".repeat(300)}`,
    },
    { tool: "refund", ok: false, ms: 3, at, arguments: "{}", reason: "There is no such order." },
    { tool: "old", ok: true, ms: 1 },
  ];
  const message = { messageId: "msg_a", role: "assistant", text: "Done.", turnId: "turn_a", seq: 5, createdAt: at };
  const session = { sessionId: "s", agentName: "main", channel: "c", userId: "u", createdAt: at, updatedAt: at };
  const more = { messageCount: 1, turnsQueued: 0, usage: { input: 1, output: 1, total: 2 } };
  const messages = [{ ...message, compacted: false, toolCalls: calls }];
  const result = { session: { ...session, ...more }, summary: null, messages, nextCursor: null };
  const url = await startServer(async (request, response) => {
    const { id } = JSON.parse((await request.setEncoding("utf8").toArray()).join(""));
    answering({ jsonrpc: "2.0", id, result })(request, response);
  });
  const { out } = await printed(["sessions", "show", "s", "--url", url, ...tokens]);
  const lines = out.split("\n");
  expect(lines).toContain("  · refund {} failed: There is no such order. (3 ms)");
  expect(lines).toContain("  · old → (1 ms)");
  expect(lines.find((line) => line.includes("find_order"))).toMatch(
    /^ {2}· find_order \{"order": "A-1"\} → paid\\u001b\[2Jx{150,190}… \(12 ms\)$/,
  );
});
