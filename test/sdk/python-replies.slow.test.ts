import { describe, expect, test } from "vitest";
import { type Answer, answerServer, event, events, json, problem } from "./answers.ts";
import { forms, runForm, runPython } from "./python.ts";

describe.concurrent.each(forms)("the replies of %s for Python %s", (form, _, python) => {
  const answered = async (answers: Answer[], code: string) => {
    await using server = await answerServer(answers);
    const client = `gateway = AsyncGateway(url="${server.url}", key="secret", rpc_token="rpc", max_retries=0)\n`;
    return await runForm(form, python, `${client}${code}\nawait gateway.close()`);
  };

  test("are objects, and still dicts", async () => {
    const shown = await answered(
      [
        json(200, { reply: "Hi", usage: { input_tokens: 3 }, parts: [{ from: "a" }] }),
        json(200, { delivery_id: "dlv_1", request_id: "req_of_the_delivery" }),
        json(200, { jsonrpc: "2.0", id: null, error: { code: -32603, message: "No" } }),
      ],
      `
import copy, pickle
one = await gateway.chat.send(message="x")
show(one.reply, one["reply"], one.usage.input_tokens, one.parts[0].from_, one.request_id, one.turn_id, isinstance(one, dict))
show({**one} == json.loads(json.dumps(one)), pickle.loads(pickle.dumps(one)) == copy.deepcopy(one) == one, "reply" in dir(one))
try:
    one.repply
except AttributeError as error:
    show(str(error))
two = await gateway.deliveries.get("dlv_1")
show(two.request_id, request_id_of(two))
`,
    );
    expect(shown).toEqual([
      ["Hi", "Hi", 3, "a", "req_9", null, true],
      [true, true, true],
      "The reply has no field `repply`. It has: reply, usage, parts.",
      ["req_of_the_delivery", "req_9"],
    ]);
  });

  test("give events and results of RPC in Python's names", async () => {
    const shown = await answered(
      [
        events("end", event("message.delta", "e1", { offset: 0, text: "Hi" }), event("turn.completed", "e2")),
        (res) =>
          res.writeHead(200, { "content-type": "application/json" }).end('[{"id":"1","result":{"agentName":"main"}}]'),
      ],
      `
show([(one.event, one.id, one.data.text) async for one in gateway.turns.events("turn_1")])
import agent_gateway._messages as messages, itertools
messages._ids = itertools.count(1)
show((await gateway.rpc.agent.status(agent_name="main")).agent_name)
`,
    );
    expect(shown).toEqual([
      [
        ["message.delta", "e1", "Hi"],
        ["turn.completed", "e2", null],
      ],
      "main",
    ]);
  });

  test("raise errors with parent classes if they fail", async () => {
    const named: [name: string, status: number][] = [
      ["turn-not-found", 404],
      ["not-found", 404],
      ["session-full", 409],
      ["rate-limited", 429],
      ["unauthenticated", 401],
      ["forbidden", 403],
      ["internal", 500],
      ["too-large", 413],
      ["new-in-404", 404],
      ["new-in-5xx", 599],
      ["new-in-4xx", 418],
    ];
    const shown = await answered(
      named.map(([name, status]) => problem(name, status)),
      `
async def parents(call):
    try:
        await call()
    except GatewayError as error:
        return [one.__name__ for one in type(error).__mro__ if one.__module__.startswith("agent_gateway")]
for _ in range(${named.length}):
    show(await parents(lambda: gateway.turns.get("turn_1")))
show(await parents(lambda: AsyncGateway(url="http://127.0.0.1:1", key="k", max_retries=0).skills.list()))
`,
    );
    const status = ["APIStatusError", "GatewayError"];
    expect(shown).toEqual([
      ["TurnNotFoundError", "NotFoundError", ...status],
      ["NotFoundError", ...status],
      ["SessionFullError", "ConflictError", ...status],
      ["RateLimitedError", "TooManyRequestsError", ...status],
      ["UnauthenticatedError", "AuthenticationError", ...status],
      ["ForbiddenError", "PermissionDeniedError", ...status],
      ["InternalError", "ServerError", ...status],
      ["TooLargeError", ...status],
      ["NotFoundError", ...status],
      ["ServerError", ...status],
      status,
      ["ConnectionFailedError", "APIConnectionError", "GatewayError"],
    ]);
  });
});

test("have no secrets in a client's repr, which shows its address", async () => {
  const [[, , python]] = forms as [(typeof forms)[number]];
  const code = `show([repr(kind(url="http://u:p@127.0.0.1:1/base", key="s3cret", rpc_token="s3cret")) for kind in (Gateway, AsyncGateway)])`;
  expect(await runPython(python, code)).toEqual([
    ["Gateway(url='http://127.0.0.1:1/base')", "AsyncGateway(url='http://127.0.0.1:1/base')"],
  ]);
});
