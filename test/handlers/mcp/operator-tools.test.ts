import { describe, expect, it } from "vitest";
import { mcpTools } from "#generated/mcp-tools.ts";
import { ADMIN, CHAT, refusal, SECRET, startTools, turnOf } from "./start-tools.ts";

const OPERATOR = mcpTools.filter(({ name }) => name !== "turn_get");
const READING = OPERATOR.filter(({ hint }) => hint === "read").map(({ name }) => name);
const CONSOLE = { ...ADMIN, scopes: ["console"] } as const;
const WRITE = { mcp: { operator: "write" } } as const;

describe("the tools of operators", () => {
  it("are at most twelve", () => {
    expect(OPERATOR.length).toBeLessThanOrEqual(12);
    expect(READING.length).toBeLessThan(OPERATOR.length);
  });

  it("are listed as the setting and the scope of the key allow", async () => {
    await using made = await startTools();
    const all = OPERATOR.map(({ name }) => name);
    const listed = async (operator: false | "read" | "write", caller = ADMIN) => {
      made.settings.operator = operator;
      return (await made.names(caller)).slice(2);
    };
    expect(await listed(false)).toEqual([]);
    expect(await listed("read")).toEqual(READING);
    expect(await listed("write")).toEqual(all);
    expect(await listed("write", CONSOLE)).toEqual(all);
    expect(await listed("write", CHAT)).toEqual([]);
  });

  it.each(OPERATOR.map(({ name }) => name))(
    "%s is refused to a key without the scope admin, as in REST",
    async (name) => {
      await using made = await startTools(WRITE);
      expect(await refusal(made.call(name))).toEqual({ name: "forbidden", message: "The key lacks the scope admin." });
    },
  );

  it("do not exist while they are off, and do not change anything while only reading is allowed", async () => {
    await using made = await startTools();
    expect(await made.call("pause_agent", { agent_name: "main" }, { caller: ADMIN })).toBeUndefined();
    made.settings.operator = "read";
    const refused = await refusal(made.call("pause_agent", { agent_name: "main" }, { caller: ADMIN }));
    expect(refused).toEqual({
      name: "forbidden",
      message: "pause_agent changes the gateway, and gateway.mcp.operator allows only reading.",
    });
    expect(made.core.agents.get("main").name).toBe("main");
  });

  it("are refused in a loop, except those that only read", async () => {
    await using made = await startTools(WRITE);
    for (const { name, hint } of OPERATOR) {
      const answer = await made.call(name, {}, { caller: ADMIN, hops: 3 });
      const isRefused =
        answer?.text.includes("The call is refused: it passed through 3 or more announcements") === true;
      expect([name, isRefused]).toEqual([name, hint !== "read"]);
    }
  });

  it("are trusted only if no text of senders or agents is in their answers", async () => {
    await using made = await startTools(WRITE);
    const trusted = (await made.tools.list(ADMIN)).filter(({ isTrusted }) => isTrusted).map(({ name }) => name);
    expect(trusted).toEqual(["pause_agent", "resume_agent", "budgets", "agent_status"]);
    expect((await made.tool("list_turns", ADMIN)).description).not.toContain("without their replies");
  });

  it("start no turn of their own", async () => {
    await using made = await startTools(WRITE);
    expect(await made.begin("health", {}, { caller: ADMIN })).toBeUndefined();
    expect((await made.tools.list(ADMIN)).filter(({ startsTurn }) => startsTurn).map(({ name }) => name)).toEqual([
      "ask_main",
    ]);
  });

  it("return undefined for a name that is not a tool", async () => {
    await using made = await startTools(WRITE);
    for (const name of ["nothing", "", "__proto__", "constructor", "chat.send", "ask_nobody"])
      expect(await made.call(name, {}, { caller: ADMIN })).toBeUndefined();
  });
});

describe("the answers of operator tools", () => {
  const call = (made: Awaited<ReturnType<typeof startTools>>, name: string, args: object = {}) =>
    made.call(name, args, { caller: ADMIN });

  it("are JSON, the same as text and structured", async () => {
    await using made = await startTools(WRITE);
    for (const [name, args] of [
      ["health", {}],
      ["usage", { groupBy: "agent" }],
      ["budgets", {}],
      ["agent_status", { agentName: "main" }],
      ["list_turns", {}],
      ["find_deliveries", { limit: 5 }],
      ["dry_run_mapping", { body: { a: 1 } }],
    ] as const) {
      const answer = await call(made, name, args);
      expect(answer?.isError, name).toBeUndefined();
      expect(JSON.parse(answer?.text ?? ""), name).toEqual(answer?.structured);
    }
  });

  it("pause and resume an agent", async () => {
    await using made = await startTools(WRITE);
    expect((await call(made, "pause_agent", { agent_name: "main" }))?.structured).toMatchObject({ paused: true });
    expect((await call(made, "agent_status", { agentName: "main" }))?.structured).toMatchObject({ paused: true });
    expect((await call(made, "resume_agent", { agent_name: "main" }))?.structured).toMatchObject({ paused: false });
  });

  it("find a turn, cancel it, and explain its request", async () => {
    await using made = await startTools(WRITE);
    const asked = made.call("ask_main", { message: "hi" });
    await made.next();
    const { structured: list } = (await call(made, "list_turns", { status: "running" })) ?? {};
    const [{ turn_id, delivery_id } = { turn_id: "", delivery_id: "" }] = (list as { turns: Record<string, string>[] })
      .turns as { turn_id: string; delivery_id: string }[];
    expect((await call(made, "cancel_turn", { turn_id }))?.structured).toMatchObject({ turn_id, status: "cancelled" });
    expect((await asked)?.error).toBe("turn-cancelled");
    expect((await call(made, "cancel_turn", { turn_id }))?.error).toBe("turn-ended");
    const explained = await call(made, "explain_delivery", { delivery_id });
    expect(explained?.structured).toMatchObject({ delivery_id, path: "/mcp", turn_id });
  });

  it("hide the secrets that REST and RPC hide", async () => {
    await using made = await startTools({ ...WRITE, agents: [{ name: "main", description: `Uses ${SECRET}.` }] });
    const answer = await call(made, "agent_status", { agentName: "main" });
    expect(answer?.structured).toMatchObject({ description: "Uses [hidden]." });
    expect(answer?.text).not.toContain(SECRET);
  });

  it("return the replies of turns as they are stored", async () => {
    await using made = await startTools();
    const asked = made.call("ask_main", { message: "hi" });
    made.say(await made.next(), `it is ${SECRET}`);
    const { turn_id } = turnOf(await asked);
    expect((await made.call("turn_get", { turn_id }))?.structured).toMatchObject({ reply: `it is ${SECRET}` });
  });

  it.each([
    ["agent_status", { agentName: "nobody" }, "Agent not found: No agent is named `nobody`."],
    ["explain_delivery", { delivery_id: "dlv_01M7YN0XEMM1B7E5S8YF3GKP2N" }, "Delivery not found: "],
    ["agent_status", {}, "Invalid Request: agentName is required."],
    [
      "agent_status",
      { agent_name: "main" },
      "Invalid Request: agent_name is unknown (did you mean agentName?). agentName is required.",
    ],
    ["list_turns", { limit: 0 }, "Invalid Request: limit must be at least 1."],
    ["list_turns", { limit: "5" }, "Invalid Request: limit must be an integer."],
    ["list_turns", { status: "done" }, "Invalid Request: status must be one of queued, running, completed"],
    ["list_turns", { cursor: "nonsense" }, "Invalid Request: The cursor is not valid."],
    ["health", { deep: true }, "Invalid Request: deep is unknown."],
    ["usage", { from: "yesterday" }, "Invalid Request: from must "],
    ["find_deliveries", { from: "2026-02-31T00:00:00.000Z" }, "Invalid Request: from is not a valid date and time."],
    ["pause_agent", { agent_name: "" }, "Agent not found: No agent is named ``. There is `main`."],
    ["dry_run_mapping", {}, "Invalid Request: body is required."],
  ])("%s answers %j with words that a model can act on", async (name, args, words) => {
    await using made = await startTools(WRITE);
    const answer = await call(made, name, args);
    expect(answer).toMatchObject({ isError: true });
    expect(answer?.structured).toBeUndefined();
    expect(answer?.text).toContain(words);
  });

  it("do not reach beyond the agents of the key", async () => {
    await using made = await startTools({ ...WRITE, agents: [{ name: "main" }, { name: "other" }] });
    const caller = { ...ADMIN, agents: ["main"] };
    const refused = made.call("agent_status", { agentName: "other" }, { caller });
    expect(await refusal(refused)).toMatchObject({ name: "forbidden" });
    const asked = made.call("ask_other", { message: "hi" });
    made.say(await made.next(), "hello");
    const { turn_id } = turnOf(await asked);
    expect(await made.call("turn_get", { turn_id }, { caller })).toMatchObject({
      isError: true,
      error: "turn-not-found",
    });
    expect(await made.call("cancel_turn", { turn_id }, { caller })).toMatchObject({ error: "turn-not-found" });
  });

  it("do not change the arguments", async () => {
    await using made = await startTools(WRITE);
    const args = Object.freeze({});
    await call(made, "list_turns", args);
    expect(args).toEqual({});
  });
});
