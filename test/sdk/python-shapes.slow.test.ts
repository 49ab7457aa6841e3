import { describe, expect, test } from "vitest";
import { type Answer, answerServer, event, events, json } from "./answers.ts";
import { forms, runForm } from "./python.ts";
import { ODD_EVENTS } from "./scenes.ts";

function raw(status: number, body: string, headers: Record<string, string> = {}): Answer {
  return (res) => void res.writeHead(status, { "content-type": "application/json", ...headers }).end(body);
}
function problem(fields: string, headers = {}) {
  return raw(400, `{"type":"/x#invalid-request"${fields}}`, { "content-type": "application/problem+json", ...headers });
}
const digits = "9".repeat(400);

describe.concurrent.each(forms)("%s for Python %s, when an answer has the wrong shape", (form, _, python) => {
  const answered = async (answers: Answer[], code: string) => {
    await using server = await answerServer(answers);
    const client = `gateway = AsyncGateway(url="${server.url}", key="secret", rpc_token="rpc", max_retries=0)\n`;
    const shown = await runForm(form, python, `${client}${code}\nawait gateway.close()`);
    return { shown, seen: server.seen };
  };

  test("reads the valid fields of a problem", async () => {
    const answers = [
      problem(',"title":"T","detail":["x"],"errors":7,"turn_id":{},"request_id":5'),
      problem(`,"title":null,"errors":[1,{"path":"/a"},null],"retry_after_ms":${digits}`),
      problem(',"retry_after_ms":1e999'),
      problem(',"retry_after_ms":-5'),
      problem("", { "retry-after": "nan" }),
      problem("", { "retry-after": digits }),
      problem("", { "retry-after": "Fri, 31 Dec 99999 23:59:59 GMT" }),
      raw(400, '{"type":5,"title":{}}', { "content-type": "application/problem+json" }),
    ];
    const { shown } = await answered(
      answers,
      `
async def facts():
    try:
        await gateway.chat.send(message="x")
    except GatewayError as error:
        return [type(error).__name__, error.title, error.detail, error.faults, error.retry_after, error.turn_id, error.request_id]
for _ in range(${answers.length}):
    show(await facts())
`,
    );
    const bare = (after: number | null) => ["InvalidRequestError", "HTTP 400", null, [], after, null, null];
    expect(shown).toEqual([
      ["InvalidRequestError", "T", null, [], null, null, null],
      ["InvalidRequestError", "HTTP 400", null, [{ path: "/a" }], null, null, null],
      bare(null),
      bare(0),
      bare(null),
      bare(null),
      bare(null),
      ["BadRequestError", "HTTP 400", null, [], null, null, null],
    ]);
  });

  test("accepts only an object as a result of RPC", async () => {
    const bodies = ["null", "[1]", '"x"', "7", "true"];
    const rpc = (fields: string) => raw(200, `{"jsonrpc":"2.0","id":"1",${fields}}`);
    const { shown } = await answered(
      [
        ...bodies.map((body) => rpc(`"result":${body}`)),
        rpc('"error":7'),
        rpc('"result":{},"error":null'),
        rpc('"error":{"code":"x","message":7,"data":{"name":5,"detail":[],"turnId":{},"retryAfterMs":"soon"}}'),
      ],
      `
import agent_gateway._messages as messages, itertools
def call():
    messages._ids = itertools.count(1)
    return gateway.rpc.agent.list()
for _ in range(8):
    show(await failing(call))
`,
    );
    const kinds = ["null", "a list", "text", "a number", "a boolean"];
    const notAGateway = (words: string) => ({ class: "NotAGatewayError", detail: expect.stringContaining(words) });
    expect(shown).toMatchObject([
      ...kinds.map((kind) => notAGateway(`The result is ${kind} in place of an object. Is this a gateway?`)),
      notAGateway("application/json in place of JSON-RPC"),
      notAGateway("application/json in place of JSON-RPC"),
      { class: "APIStatusError", name: "unknown", text: "rpc.agent.list: Error" },
    ]);
  });

  test("ends a stream at an event that it cannot use", async () => {
    const odd = [
      ...ODD_EVENTS.map(([, text]) => text),
      event("message.delta", "1", { offset: 1e30, text: "a" }).replace("1e+30", "1e30"),
      event("turn.started", "a\u000b\u007fb"),
      event("turn.started", "x".repeat(2_000)),
    ];
    const { shown } = await answered(
      [
        ...odd.map((one) => events("end", one)),
        events("end", event("turn.failed", "1", { error: { name: "new", title: 5 } })),
      ],
      `
async def read():
    return [piece async for piece in gateway.chat.stream(message="x").text()]
for _ in range(${odd.length + 1}):
    show(await failing(read))
`,
    );
    expect(shown).toMatchObject([
      ...odd.map(() => ({
        class: "ConnectionFailedError",
        detail: expect.stringMatching(/^The stream was lost before its first event: an event is not /),
      })),
      { class: "GatewayError", name: "new", text: "new" },
    ]);
  });

  test("sends a lone surrogate as an escape", async () => {
    const { shown, seen } = await answered(
      [json(200, { reply: "ok" })],
      'show((await gateway.chat.send(message="ü" + chr(0xD800))).reply)',
    );
    expect([shown, seen[0]?.body]).toEqual([["ok"], { message: "ü\ud800" }]);
  });
});
