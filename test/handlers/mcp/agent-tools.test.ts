import { describe, expect, it } from "vitest";
import { GatewayError } from "#kit/errors.ts";
import { NO_POLICY } from "#store/policy.ts";
import { skillsFolder, skillText } from "#test/harness/skills.ts";
import { ADMIN, CHAT, refusal, SECRET, startTools, turnOf } from "./start-tools.ts";

/** Calls the tool of `main`, and lets the agent answer with the text. */
async function asked(made: Awaited<ReturnType<typeof startTools>>, args: object, reply: string) {
  const answer = made.call("ask_main", args);
  made.say(await made.next(), reply);
  return (await answer) ?? { text: "no such tool" };
}

describe("the tool of an agent", () => {
  it("answers with the reply, and its session continues the conversation", async () => {
    await using made = await startTools();
    const first = await asked(made, { message: "hi" }, "hello");
    const { session_id, turn_id } = turnOf(first);
    expect(first).toEqual({
      text: "hello",
      note: `To continue this conversation, send the next message with the session ${session_id}.`,
      structured: {
        turn_id,
        session_id,
        status: "completed",
        reply: "hello",
        usage: { input: 0, output: 0, total: 0, unknown: true },
      },
    });
    const second = made.call("ask_main", { message: "and?", session: session_id });
    const run = await made.next();
    expect((await run.turn.history()).map(({ text }) => text)).toEqual(["hi", "hello"]);
    made.say(run, "that is all");
    expect((await second)?.structured).toMatchObject({ session_id, reply: "that is all" });
  });

  it("records its request, and stores the turn under the channel mcp", async () => {
    await using made = await startTools();
    const answer = await asked(made, { message: "hi" }, "hello");
    const { turn_id, session_id } = turnOf(answer);
    const turn = await made.store.getTurn(turn_id);
    expect(turn).toMatchObject({ surface: "rest", caller: "chat", deliveryId: "dlv_01M7YN0XEMM1B7E5S8YF3GK100" });
    expect(await made.store.getSession(session_id)).toMatchObject({ channel: "mcp", userId: "chat" });
  });

  it("has the description of its agent, and says that the answer is not trusted", async () => {
    await using made = await startTools({
      agents: [{ name: "main", description: "Knows the invoices" }, { name: "other" }],
    });
    const tool = await made.tool("ask_main");
    expect(tool.description).toMatch(
      /^Knows the invoices\. The result is the text of another program: .* `turn_get`\.$/,
    );
    expect((await made.tool("ask_other")).description).toMatch(/^Sends a message to the agent other\. The result/);
    expect(tool).toMatchObject({ title: "Ask main", hint: "write", startsTurn: true });
  });

  it("hides the secrets of the configuration in its description", async () => {
    await using made = await startTools({ agents: [{ name: "main", description: `Uses ${SECRET}.` }] });
    expect((await made.tool("ask_main")).description).toMatch(/^Uses \[hidden\]\./);
  });

  it.each([
    [{}, "message is required."],
    [{ message: "" }, "message must have at least 1 character."],
    [{ message: 5 }, "message must be a string."],
    [{ message: "hi", sesion: "a" }, "sesion is unknown (did you mean session?)."],
    [{ message: "hi", session: " a" }, "session must be of printable ASCII characters"],
    [{ message: "hi", session: "a".repeat(257) }, "session must have at most 256 characters."],
    [{ message: "hi", wait: true }, "wait is unknown (there are message, session)."],
    [[], "The arguments must be an object."],
    ["hi", "The arguments must be an object."],
    [undefined, "message is required."],
    [null, "message is required."],
  ])("answers the arguments %j with their fault, and starts nothing", async (args, words) => {
    await using made = await startTools();
    const answer = await made.tools.call("ask_main", args, { ...(await callOf(made)) });
    expect(answer).toMatchObject({ isError: true, error: "invalid-request" });
    expect(answer?.text).toContain(`Invalid Request: ${words}`);
    expect(made.core.runner.running()).toBe(0);
  });

  it("names several faults at once", async () => {
    await using made = await startTools();
    const answer = await made.call("ask_main", { session: 5, more: 1 });
    expect(answer?.text).toBe(
      "Invalid Request: message is required. more is unknown (there are message, session). session must be a string.",
    );
  });

  it("refuses the session of another agent, and a session whose id is reserved for an agent beyond the reach of the key", async () => {
    await using made = await startTools({ agents: [{ name: "main" }, { name: "other" }] });
    const other = made.call("ask_other", { message: "hi" });
    made.say(await made.next(), "hello");
    const { session_id: session } = turnOf(await other);
    const taken = await made.call("ask_main", { message: "hi", session });
    expect(taken).toMatchObject({ isError: true, error: "session-conflict" });
    const caller = { ...CHAT, agents: ["main"] };
    const reserved = made.call("ask_main", { message: "hi", session: "agent:other:main" }, { caller });
    expect(await refusal(reserved)).toMatchObject({ name: "forbidden" });
  });

  it("answers with the failure of its turn", async () => {
    await using made = await startTools();
    const answer = made.call("ask_main", { message: "hi" });
    (await made.next()).fail(new Error(`it broke: ${SECRET}`));
    const failed = await answer;
    expect(failed).toMatchObject({
      isError: true,
      error: "turn-failed",
      structured: { status: "failed", error: { name: "turn-failed" } },
    });
    expect(failed?.text).toMatch(/^Turn failed: /);
    expect(JSON.stringify(failed)).not.toContain(SECRET);
  });

  it("answers with the text so far if its turn is cancelled", async () => {
    await using made = await startTools();
    const answer = made.call("ask_main", { message: "hi" });
    const run = await made.next();
    run.say("half");
    await made.clock.settle();
    await made.core.turns.cancel(run.turn.turnId);
    expect(await answer).toMatchObject({
      isError: true,
      error: "turn-cancelled",
      structured: { status: "cancelled", reply: "half" },
    });
  });

  it("answers after its waiting time with the turn, which continues", async () => {
    await using made = await startTools();
    const answer = made.call("ask_main", { message: "hi" });
    const run = await made.next();
    await made.clock.advance(50_000);
    const waiting = await answer;
    const { turn_id } = turnOf(waiting);
    expect(waiting?.structured).toMatchObject({ status: "running" });
    expect(waiting?.text).toBe(
      `The turn ${turn_id} is still running. Call turn_get with this turn_id and wait_seconds 50 to get the reply.`,
    );
    made.say(run, "at last");
    await made.ended({ turnId: turn_id });
    expect((await made.call("turn_get", { turn_id }))?.text).toBe("at last");
  });

  it("ends its wait if the client disconnects, and the turn continues", async () => {
    await using made = await startTools();
    const left = new AbortController();
    const answer = made.call("ask_main", { message: "hi" }, { signal: left.signal });
    const run = await made.next();
    left.abort();
    const { turn_id: turnId } = turnOf(await answer);
    made.say(run, "unheard");
    expect(await made.ended({ turnId })).toMatchObject({ status: "completed", reply: "unheard" });
  });

  it("reports its steps while it waits", async () => {
    await using made = await startTools();
    const steps: number[] = [];
    const answer = made.call("ask_main", { message: "hi" }, { progress: (count) => steps.push(count) });
    const run = await made.next();
    run.say("one");
    await made.clock.settle();
    expect(steps.length).toBeGreaterThan(0);
    run.end();
    await answer;
    await made.clock.settle();
    expect(steps).toEqual(steps.map((_, n) => n + 1));
  });

  it("passes the hops of its call to the turn, and is refused at the limit", async () => {
    await using made = await startTools();
    const answer = made.call("ask_main", { message: "hi" }, { hops: 2 });
    const run = await made.next();
    expect(run.turn.hops).toBe(2);
    made.say(run, "hello");
    await answer;
    const refused = await made.call("ask_main", { message: "hi" }, { hops: 3 });
    expect(refused).toMatchObject({ isError: true, error: "invalid-request" });
    expect(refused?.text).toContain(
      "The call is refused: it passed through 3 or more announcements or agents, as in a loop.",
    );
  });

  it("reports a budget without room and the time of its reset", async () => {
    // biome-ignore lint/suspicious/noThenProperty: the key of the configuration.
    const budget = { name: "small", per: "day", timeZone: "UTC", tokens: 1, warnAt: 0.8, then: "refuse" } as const;
    const open = { agents: undefined, keys: undefined, surfaces: undefined, cost: undefined };
    const policy = { ...NO_POLICY, budgets: [{ ...budget, ...open }] };
    await using made = await startTools({ settings: { policy } });
    const first = made.call("ask_main", { message: "hi" });
    const run = await made.next();
    run.use({ input: 5, output: 5 });
    made.say(run, "hello");
    await first;
    const refused = await made.call("ask_main", { message: "hi" });
    expect(refused).toMatchObject({ isError: true, error: "budget-exceeded" });
    expect(refused?.text).toBe(
      "Budget exceeded: The budget `small` of 1 tokens per day is spent. It resets at 2026-11-22T00:00:00.000Z.",
    );
  });

  it("answers with its turn if the store fails after the start, because an error would start the work again", async () => {
    const failing: { getTurn?: GatewayError } = {};
    await using made = await startTools({
      wrapStore: (store) => ({
        getTurn: (turnId) => (failing.getTurn ? Promise.reject(failing.getTurn) : store.getTurn(turnId)),
      }),
    });
    failing.getTurn = new GatewayError("store-unavailable", "the database restarts", { retryAfterMs: 1_000 });
    const called = await made.call("ask_main", { message: "hi" });
    expect(called?.isError).toBeUndefined();
    expect(called).toMatchObject({ structured: { turn_id: expect.any(String), session_id: expect.any(String) } });
    const begun = await made.begin("ask_main", { message: "hi" }, { waitMs: 1_000 });
    expect(begun).toMatchObject({ turn: { turnId: expect.any(String) }, status: "working" });
    const read = await made.call("turn_get", { turn_id: turnOf(called).turn_id });
    expect(read?.text).toBe("Store unavailable: the database restarts. Try again in 1 s.");
  });

  it("reports that the gateway takes no work", async () => {
    await using made = await startTools({
      admit: () => {
        throw new GatewayError("shutting-down", undefined, { retryAfterMs: 1_500 });
      },
    });
    const answer = await made.call("ask_main", { message: "hi" });
    expect(answer).toMatchObject({ isError: true, error: "shutting-down" });
    expect(answer?.text).toContain("Try again in 2 s.");
  });

  it("throws an error of the gateway, which the door answers without its cause", async () => {
    const broken = () => Promise.reject(new TypeError("a fault of ours"));
    await using made = await startTools({ wrapStore: () => ({ startTurn: broken }) });
    expect(await refusal(made.call("ask_main", { message: "hi" }))).toMatchObject({ name: "TypeError" });
  });

  it("answers a repeated request with the first turn", async () => {
    await using made = await startTools();
    const idempotency = { key: "mcp-1", hash: "h" };
    const first = made.call("ask_main", { message: "hi" }, { idempotency });
    made.say(await made.next(), "once");
    const again = await made.call("ask_main", { message: "hi" }, { idempotency });
    expect(again?.structured).toEqual((await first)?.structured);
  });

  it("answers an empty reply with words", async () => {
    await using made = await startTools();
    const answer = await asked(made, { message: "hi" }, "");
    expect(answer).toMatchObject({ text: "The agent sent an empty reply.", structured: { reply: "" } });
  });
});

describe("the tools of agents", () => {
  it("are those that the settings name, and that the key may use", async () => {
    const agents = ["a", "b", "c", "d"].map((name) => ({ name }));
    await using made = await startTools({ agents, mcp: { agents: ["b", "c", "d"] } });
    expect(await made.names()).toEqual(["ask_b", "ask_c", "ask_d", "turn_get"]);
    const caller = { ...CHAT, agents: ["d", "a", "b"] };
    expect(await made.names(caller)).toEqual(["ask_b", "ask_d", "turn_get"]);
    expect(await made.call("ask_c", { message: "hi" }, { caller })).toBeUndefined();
    expect(await made.call("ask_a", { message: "hi" })).toBeUndefined();
  });

  it("follow a change of the agents, of the settings and of the key", async () => {
    await using made = await startTools({ agents: [{ name: "main" }, { name: "old" }] });
    await made.core.reconfigure(made.settingsWith([{ name: "main" }, { name: "new" }]));
    expect(await made.names()).toEqual(["ask_main", "ask_new", "turn_get"]);
    expect(await made.call("ask_old", { message: "hi" })).toBeUndefined();
    made.settings.agents = ["new"];
    expect(await made.names()).toEqual(["ask_new", "turn_get"]);
  });

  it("have the same names for every key, whatever characters the agents have", async () => {
    const long = "x".repeat(64);
    const names = ["a.b", "a_b", "a b", "Ünï", "日本", "😀", long, `${long.slice(0, 63)}y`];
    await using made = await startTools({ agents: names.map((name) => ({ name })) });
    expect(await made.names()).toEqual([
      "ask_a_b_2",
      "ask_a_b",
      "ask_a_b_3",
      "ask__n_",
      "ask___",
      "ask__",
      `ask_${"x".repeat(60)}`,
      `ask_${"x".repeat(58)}_2`,
      "turn_get",
    ]);
    expect(await made.names({ ...CHAT, agents: ["a b"] })).toEqual(["ask_a_b_3", "turn_get"]);
    made.settings.agents = ["a b"];
    expect(await made.names()).toEqual(["ask_a_b_3", "turn_get"]);
  });

  it("do not repeat the schemas of turn_get", async () => {
    await using made = await startTools();
    const outputSchema = (await made.tool("ask_main")).outputSchema as { properties: object };
    const { properties } = outputSchema;
    expect(Object.keys(properties)).toEqual(["turn_id", "session_id", "status", "reply", "usage", "error"]);
    expect(JSON.stringify(outputSchema).length).toBeLessThan(500);
  });

  it("are found by the names of the list alone", async () => {
    const skills = skillsFolder({ usage: skillText("usage", "Counts."), sum: skillText("sum", "Adds.") });
    const agents = ["a.b", "a_b", "main"].map((name) => ({ name, skills: ["*"] }));
    await using made = await startTools({ agents, mcp: { operator: "write" }, settings: { skillDirs: [skills] } });
    const listed = await made.tools.list(ADMIN);
    for (const { name, inputSchema } of listed)
      expect(made.tools.find(name, ADMIN)).toMatchObject({ name, inputSchema });
    for (const name of ["ask_a.b", "ask_", "main", "skill_sum", "skill_", "", "__proto__", "ask_constructor"])
      expect(made.tools.find(name, ADMIN)).toBeUndefined();
    expect(listed.map(({ name }) => name)).toContain("skill_usage");
  });

  it("are listed in the same order for 300 agents, each with its own name", async () => {
    const agents = Array.from({ length: 300 }, (_, n) => ({ name: `agent ${n}` }));
    await using made = await startTools({ agents });
    const names = await made.names(ADMIN);
    expect(new Set(names).size).toBe(301);
    expect(await made.names(ADMIN)).toEqual(names);
  });
});

async function callOf(made: Awaited<ReturnType<typeof startTools>>) {
  const delivery = () => {
    throw new Error("nothing is recorded");
  };
  const signal = new AbortController().signal;
  return { caller: CHAT, requestId: "req_1", signal, hops: 0, idempotency: undefined, delivery, waitMs: 1, made };
}
