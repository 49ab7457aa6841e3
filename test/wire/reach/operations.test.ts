import { describe, expect, test } from "vitest";
import { methods } from "#generated/methods.ts";
import { type Operation, routes } from "#generated/routes.ts";
import type { RpcMethod } from "#generated/rpc-types.ts";
import type { Route } from "#test/harness/contract.ts";
import { shareGateway, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import type { Reply } from "#test/harness/rest.ts";
import { createRpc, transports } from "#test/harness/rpc.ts";
import { skillsFolder } from "#test/harness/skills.ts";
import { openSocket } from "../ws/socket.ts";
import { AGENTS, type AgentName, configOf, FULL, LIMITED, SKILLS, seed } from "./limited.ts";

const folder = skillsFolder(SKILLS);
/** A schedule of each agent, named as the agent. */
const schedules = { a: { every: "30d", agent: "a", message: "hi" }, b: { every: "30d", agent: "b", message: "hi" } };
const gateway = await shareGateway({ config: configOf(["a"], { skills: { dirs: [folder] }, schedules }) });

type Ids = { turn_id: string; session_id: string };
type Outcomes = Record<AgentName, string>;
/** What a caller that is limited to `a` gets, and one that is not; for `a`, for `b` and for an agent that does not exist. */
type Row = { limited: Outcomes; full: Outcomes };
function row(limited: [string, string, string], full: [string, string, string]): Row {
  const outcomesOf = ([a, b, zz]: [string, string, string]) => ({ a, b, zz });
  return { limited: outcomesOf(limited), full: outcomesOf(full) };
}

const STARTING = row(["200", "forbidden", "forbidden"], ["200", "200", "agent-not-found"]);
const READING = row(["200", "turn-not-found", "turn-not-found"], ["200", "200", "turn-not-found"]);

type Ask = (key: string, agent: AgentName, ids: Ids) => Promise<Reply>;
const { rest } = gateway;
const hello = [{ role: "user", content: "hi" }];
/** Every operation of REST and of OpenAI's door that names an agent, by itself or by a turn. */
const REST: Partial<Record<Operation, Row & { ask: Ask }>> = {
  "chat.send": { ...STARTING, ask: (key, agent) => rest.call("chat.send", { key, body: { message: "hi", agent } }) },
  "skills.trigger": {
    ...STARTING,
    ask: (key, agent) => rest.call("skills.trigger", { key, body: { skill_id: "shared", agent } }),
  },
  "completions.create": {
    ...STARTING,
    ask: (key, model) => rest.call("completions.create", { key, body: { model, messages: hello } }),
  },
  "models.get": {
    ...row(["200", "agent-not-found", "agent-not-found"], ["200", "200", "agent-not-found"]),
    ask: (key, model) => rest.call("models.get", { key, path: { model } }),
  },
  "turns.get": { ...READING, ask: (key, _, { turn_id }) => rest.call("turns.get", { key, path: { turn_id } }) },
  "turns.events": { ...READING, ask: (key, _, { turn_id }) => rest.call("turns.events", { key, path: { turn_id } }) },
  "turns.cancel": {
    ...row(["turn-ended", "turn-not-found", "turn-not-found"], ["turn-ended", "turn-ended", "turn-not-found"]),
    ask: (key, _, { turn_id }) => rest.call("turns.cancel", { key, path: { turn_id } }),
  },
};
/** Operations of scope chat that name no agent. `lists` shows what the lists show. */
const WITHOUT_AGENT: readonly Operation[] = ["skills.list", "models.list", "identity.get", "codes.redeem"];

/** An answer without what differs from call to call, and without the names that the caller gave. */
function wordsOf(text: string, { turn_id, session_id }: Ids, agent: string): string {
  return text
    .replace(/req_\w+/g, "req")
    .replaceAll(turn_id, "turn")
    .replaceAll(session_id, "session")
    .replaceAll(`\`${agent}\``, "`agent`");
}

test("every operation of scope chat is among these, and a key with the scope admin is never limited", () => {
  const ofChat = (routes as readonly Route[]).flatMap(({ scope, operation }) => (scope === "chat" ? operation : []));
  expect(ofChat.toSorted()).toEqual([...Object.keys(REST), ...WITHOUT_AGENT].toSorted());
});

describe.each(Object.entries(REST))("%s", (_, { ask, limited, full }) => {
  test.each(AGENTS)("of the agent %s", async (agent) => {
    const ids = (await seed(gateway))[agent];
    for (const [key, outcomes] of [
      [LIMITED.key, limited],
      [FULL.key, full],
      [gateway.consoleToken, full],
    ] as const) {
      const { error, status } = await ask(key, agent, ids);
      expect(error ?? String(status)).toBe(outcomes[agent]);
    }
  });

  test("MUST refuse an agent that exists in the words for one that does not", async () => {
    const all = await seed(gateway);
    const [other, unknown] = [await ask(LIMITED.key, "b", all.b), await ask(LIMITED.key, "zz", all.zz)];
    expect(other.status).toBe(unknown.status);
    expect(wordsOf(other.text, all.b, "b")).toBe(wordsOf(unknown.text, all.zz, "zz"));
    expect(unknown.text.replaceAll("`zz`", "")).not.toMatch(/\bb\b/);
  });
});

type RpcRow = Row & { params: (agent: AgentName, ids: Ids) => object };
const ANY = row(["result", "result", "result"], ["result", "result", "result"]);
const NEVER = row(["forbidden", "forbidden", "forbidden"], ["result", "result", "result"]);
const OF_SESSION = row(["result", "session-not-found", "session-not-found"], ["result", "result", "session-not-found"]);
const OF_AGENT = row(["result", "forbidden", "forbidden"], ["result", "result", "agent-not-found"]);
const OF_SCHEDULE = row(
  ["result", "schedule-not-found", "schedule-not-found"],
  ["result", "result", "schedule-not-found"],
);
function bySchedule(scheduleName: AgentName) {
  return { scheduleName };
}
function bySession(_: AgentName, { session_id }: Ids) {
  return { sessionId: session_id };
}
function byAgent(agentName: AgentName) {
  return { agentName };
}
function noParams() {
  return {};
}

/** Every method of RPC. */
const RPC: Record<RpcMethod, RpcRow> = {
  "agent.list": { ...ANY, params: noParams },
  "agent.status": { ...OF_AGENT, params: byAgent },
  "agent.reload": {
    ...row(["forbidden", "forbidden", "forbidden"], ["result", "result", "agent-not-found"]),
    params: byAgent,
  },
  "agent.sendMessage": { ...OF_AGENT, params: (agentName) => ({ agentName, message: "hi", wait: true }) },
  "session.list": { ...OF_AGENT, params: byAgent },
  "session.get": { ...OF_SESSION, params: bySession },
  "session.compact": { ...OF_SESSION, params: bySession },
  "session.delete": { ...OF_SESSION, params: bySession },
  "system.health": { ...ANY, params: noParams },
  "system.info": { ...ANY, params: noParams },
  "system.reload": { ...NEVER, params: noParams },
  "budget.list": { ...ANY, params: noParams },
  "schedule.list": { ...ANY, params: noParams },
  "schedule.run": { ...OF_SCHEDULE, params: bySchedule },
  "schedule.pause": { ...OF_SCHEDULE, params: bySchedule },
  "schedule.resume": { ...OF_SCHEDULE, params: bySchedule },
  "usage.stats": { ...row(["result", "forbidden", "forbidden"], ["result", "result", "result"]), params: byAgent },
};

type Answer = { result?: unknown; error?: { data: { name: string; detail?: string } } };
function outcomeOf({ error }: Answer): string {
  return error?.data.name ?? "result";
}

test("every method of RPC is among these", () => {
  expect(Object.keys(RPC).toSorted()).toEqual(Object.keys(methods).toSorted());
});

describe.each(["HTTP/1.1", "WebSocket"])("over %s", (name) => {
  const { open } = transports[name] as (typeof transports)[string];
  const ask = async (token: string, method: string, params: object): Promise<Answer> => {
    await using transport = await open(gateway as TestGateway, token);
    return JSON.parse(String((await transport.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }))).text));
  };

  describe.each(Object.entries(RPC))("%s", (method, { params, limited, full }) => {
    test.each(AGENTS)("of the agent %s", async (agent) => {
      for (const [token, outcomes] of [
        [LIMITED.rpcToken, limited],
        [FULL.rpcToken, full],
      ] as const) {
        const ids = (await seed(gateway))[agent];
        expect(outcomeOf(await ask(token, method, params(agent, ids)))).toBe(outcomes[agent]);
      }
    });

    test("MUST refuse an agent that exists in the words for one that does not", async () => {
      const all = await seed(gateway);
      const [b, zz] = await Promise.all(
        (["b", "zz"] as const).map(async (agent) => {
          const { error } = await ask(LIMITED.rpcToken, method, params(agent, all[agent]));
          return wordsOf(JSON.stringify(error ?? null), all[agent], agent);
        }),
      );
      expect(b).toBe(zz);
    });
  });

  test("a session of another agent is still there after a refused deletion", async () => {
    const { b } = await seed(gateway);
    await ask(LIMITED.rpcToken, "session.delete", { sessionId: b.session_id });
    await ask(LIMITED.rpcToken, "session.compact", { sessionId: b.session_id, keep: 0 });
    const { result } = await ask(FULL.rpcToken, "session.get", { sessionId: b.session_id });
    expect(result).toMatchObject({ session: { messageCount: 2 }, summary: null });
  });
});

describe("schedules", () => {
  const ask = (token: string, method: RpcMethod, params: object = {}) =>
    createRpc(gateway.url, token).call(method, params);

  test("a refused call changes nothing", async () => {
    const read = async () => (await ask(FULL.rpcToken, "schedule.list")).result;
    const before = await read();
    for (const method of ["schedule.pause", "schedule.run"] as const)
      await ask(LIMITED.rpcToken, method, { scheduleName: "b" });
    expect(await read()).toEqual(before);
  });

  test("a token whose agents were changed gets no turn of another agent by its idempotency key", async () => {
    const config = (agents: string[]) => configOf(agents, { schedules });
    await using changing = await startGateway({ config: config(["a", "b"]) });
    const run = (scheduleName: string) =>
      createRpc(changing.url, LIMITED.rpcToken).call("schedule.run", { scheduleName, idempotencyKey: "monday" });
    expect(await run("b")).toMatchObject({ result: { agentName: "b" } });
    await changing.reload(config(["a"]));
    expect(await run("b")).toMatchObject({ error: { data: { name: "forbidden" } } });
  });
});

describe("rpc.subscribe", () => {
  const outcomes = async (token: string, requestOf: (agent: AgentName, ids: Ids) => object) => {
    const all = await seed(gateway);
    using socket = await openSocket(gateway, { token });
    const found = [];
    for (const agent of AGENTS)
      found.push(outcomeOf((await socket.ask("rpc.subscribe", requestOf(agent, all[agent]))) as Answer));
    return found;
  };

  test.each([
    ["an agent", (agent: AgentName) => ({ agents: [agent] }), OF_AGENT],
    ["a session", (_: AgentName, { session_id }: Ids) => ({ sessions: { [session_id]: null } }), OF_SESSION],
    ["the gateway", () => ({ gateway: null }), NEVER],
    ["the deliveries", () => ({ gateway: null, deliveries: true }), NEVER],
  ])("to %s", async (_, requestOf, { limited, full }) => {
    expect(await outcomes(LIMITED.rpcToken, requestOf)).toEqual(Object.values(limited));
    expect(await outcomes(FULL.rpcToken, requestOf)).toEqual(Object.values(full));
  });
});

test("the metrics, which concern all agents, are refused to a limited token", async () => {
  const ask = (key: string) => rest.send("GET", "/metrics", { key });
  expect([(await ask(LIMITED.rpcToken)).error, (await ask(FULL.rpcToken)).status]).toEqual(["forbidden", 200]);
});
