import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { KIND_NAMES, KINDS } from "#test/backends/model-kinds.ts";
import { startA2aAgent } from "#test/backends/stand-ins/a2a-agent.ts";
import { agentProgram } from "#test/backends/stand-ins/acp.ts";
import type { Fault } from "#test/backends/stand-ins/faults.ts";
import { startHttpAgent } from "#test/backends/stand-ins/http-agent.ts";
import type { HttpStandIn } from "#test/backends/stand-ins/http-stand-in.ts";
import type { ModelStandIn } from "#test/backends/stand-ins/model-answers.ts";
import { type SomeConfig, startGateway } from "#test/harness/gateway.ts";

/** An answer to any message that takes seconds. */
const LONG = Array.from({ length: 500 }, () => "word ");
const PACE_MS = 20;
const SHORT = "in short";

const models: Record<string, ModelStandIn> = {};
for (const kind of KIND_NAMES) models[kind] = await KINDS[kind].start({ text: LONG, paceMs: PACE_MS });
const http = await startHttpAgent("stream", PACE_MS);
const a2a = await startA2aAgent({ binding: "JSONRPC", streaming: true, paceMs: PACE_MS }, (text) => ({
  says: text.includes(SHORT) ? ["word ", "word ", "word "] : LONG,
}));
const standIns: Record<string, HttpStandIn> = { ...models, http, a2a };
const REMOTE = Object.keys(standIns);
const WORDS = LONG.join("");

const COMMAND = [
  "read -r turn",
  "case $turn in",
  "*never*) exec sleep 60;;",
  "*silent*) printf 'so far'; exec sleep 60;;",
  "esac",
  "while :; do printf 'word '; sleep 0.02; done",
].join("\n");

const timeouts = { connect: "5s", firstByte: "2500ms", silence: "1500ms" };
/** Long enough to detect a late start and a silence, also on a busy machine. */
const DEADLINE = "8s";
function agentsWith(deadline: "4s" | typeof DEADLINE): SomeConfig["agents"] {
  const limits = { timeouts, deadline };
  return {
    ...Object.fromEntries(
      KIND_NAMES.map((kind) => [
        kind,
        { backend: "model", models: { main: { provider: kind, model: "the-model" } }, ...limits },
      ]),
    ),
    http: { backend: "http", http: { url: http.url }, ...limits },
    a2a: { backend: "a2a", a2a: { url: a2a.url }, ...limits },
    command: { backend: "command", command: { run: ["sh", "-c", COMMAND] }, ...limits },
    acp: { backend: "acp", acp: { run: agentProgram() }, ...limits },
    echo: { backend: "echo" },
  };
}
function open(deadline: Parameters<typeof agentsWith>[0]) {
  return startGateway({
    config: {
      gateway: { defaultAgent: "echo" },
      providers: Object.fromEntries(
        KIND_NAMES.map((kind) => [
          kind,
          { type: kind, baseUrl: `${standIns[kind]?.url}${KINDS[kind].base}`, apiKey: "key" },
        ]),
      ),
      agents: agentsWith(deadline),
    },
  });
}
const gateway = await open(DEADLINE);
const { rest } = gateway;
afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  for (const server of Object.values(standIns)) await server[Symbol.asyncDispose]();
});
afterEach(() => {
  for (const server of Object.values(standIns)) server.reset();
});

const ALL = [...REMOTE, "command", "acp"];
const PROGRAMS: Record<string, Record<string, string>> = {
  command: { never: "never", silent: "silent", slow: "go on" },
  acp: { never: "do: never", silent: "do: silent", slow: "do: endless" },
};
type How = "never" | "silent" | "slow";
function messageOf(agent: string, how: How): string {
  return PROGRAMS[agent]?.[how] ?? (how === "silent" ? SHORT : WORDS);
}

async function turnOf(turnId: unknown) {
  return (await rest.call("turns.get", { path: { turn_id: String(turnId) } })).json as {
    status: string;
    reply: string | null;
    attempt: number;
    usage: { input: number; output: number };
    error: { detail: string; type: string } | null;
  };
}

/** Makes every kind of agent answer at once. Returns how each turn ended that got as far as the test needs. */
async function runAll(how: How, session: string) {
  // On a busy machine a turn may end before its agent was called, or before a streaming agent has started.
  const isLate = ({ agent, reply }: { agent: string; reply: string | null }): boolean =>
    (how !== "never" && reply === null) || standIns[agent]?.seen.some(({ method }) => method === "POST") === false;
  let ended = await run(ALL, how, session);
  for (let tries = 1, late = ended.filter(isLate); late.length > 0 && tries < 4; tries++, late = ended.filter(isLate)) {
    const names = late.map(({ agent }) => agent);
    const again = await run(names, how, `${session}-${tries}`);
    ended = [...ended.filter(({ agent }) => !names.includes(agent)), ...again];
  }
  return ended;
}

async function run(agents: readonly string[], how: How, session: string) {
  const ids = await Promise.all(
    agents.map(async (agent) => {
      const { json } = await gateway.hooks.agent({
        message: messageOf(agent, how),
        agent,
        session: `webhook:${session}-${agent}`,
      });
      return [agent, json.turnId] as const;
    }),
  );
  // A caller of another agent is answered at once meanwhile.
  expect((await rest.call("chat.send", { body: { message: "hello", agent: "echo" } })).json.reply).toBe("hello");
  const isOver = async (turnId: unknown) => ["failed", "completed"].includes((await turnOf(turnId)).status);
  for (const [, turnId] of ids) await expect.poll(() => isOver(turnId), { interval: 10 }).toBe(true);
  return await Promise.all(ids.map(async ([agent, turnId]) => ({ agent, ...(await turnOf(turnId)) })));
}

function failRemote(fault: Fault) {
  for (const server of Object.values(standIns)) server.fail(fault, "POST");
}

/** The connection of each turn was closed by the gateway. */
async function expectLeft() {
  for (const agent of REMOTE) {
    const asked = standIns[agent]?.seen.filter(({ method, json }) => method === "POST" && json.method !== "CancelTask");
    expect([agent, await Promise.all(asked?.map(({ left }) => left) ?? [])]).toEqual([agent, asked?.map(() => true)]);
    expect(asked?.length).toBeGreaterThan(0);
  }
}

describe("F06: a hanging agent of any type", () => {
  beforeAll(async () => {
    // Their code is already loaded, so that the limits apply only to their answers.
    failRemote("400");
    const warm = [...REMOTE, "acp"].map((agent) => rest.call("chat.send", { body: { message: "hello", agent } }));
    await Promise.all(warm);
    for (const server of Object.values(standIns)) server.reset();
  });

  it("MUST fail its turn by `firstByte` or the deadline if it does not start, and be disconnected", async () => {
    failRemote("hang before the first byte");
    for (const { agent, status, reply, error } of await runAll("never", "never"))
      expect([agent, status, reply, error?.detail]).toEqual([
        agent,
        "failed",
        null,
        expect.stringMatching(/did not begin to answer in time|passed its deadline/),
      ]);
    await expectLeft();
  });

  it("MUST fail its turn by `silence` if it stops in the middle; the written text is stored and it is disconnected", async () => {
    failRemote("hang in the middle");
    for (const server of Object.values(models)) server.say({ text: ["word ", "word ", "word "] });
    for (const { agent, status, reply, error, attempt } of await runAll("silent", "silent")) {
      expect([agent, status, error?.detail]).toEqual([
        agent,
        "failed",
        "the agent's backend stopped sending in the middle of its reply",
      ]);
      expect([agent, attempt, reply]).toEqual([agent, 1, expect.stringMatching(/^(word |You |so far)/)]);
    }
    await expectLeft();
  });

  it("MUST fail its turn by its deadline however much it writes; the text is stored and it is disconnected", async () => {
    for (const { agent, status, reply, error } of await runAll("slow", "slow")) {
      expect([agent, status, error?.detail]).toEqual([agent, "failed", "the turn passed its deadline"]);
      expect([agent, reply]).toEqual([agent, expect.stringMatching(/^(You said: )?(word |piece)/)]);
    }
    await expectLeft();
  });
});

describe("F09: a cancelled turn", () => {
  it.each(REMOTE)("MUST reach its remote, with the written text stored and its usage counted: %s", async (agent) => {
    const server = standIns[agent] as HttpStandIn;
    server.reset();
    const stream = await rest.stream("chat.send", { body: { message: WORDS, agent } });
    let turn_id = "";
    for await (const { event, data } of stream.events) {
      turn_id ||= String((data as { turn_id?: string }).turn_id ?? "");
      if (event === "message.delta") break;
    }
    const asked = server.seen.findLast(({ method }) => method === "POST");
    await rest.call("turns.cancel", { path: { turn_id } });
    expect(await asked?.left).toBe(true);
    const { status, reply, usage } = await turnOf(turn_id);
    expect([status, reply]).toEqual(["cancelled", expect.stringMatching(/^(You said: )?(word )*/)]);
    expect(reply).not.toBe("");
    // The usage of a remote that does not report it during its answer is unknown.
    if (agent !== "http" && agent !== "a2a") expect(Math.min(usage.input, usage.output)).toBeGreaterThan(0);
  });
});

describe("F07: a failing remote agent", () => {
  it.each(["http", "a2a"])("MUST get no requests for a while after five failures in a row: %s", async (agent) => {
    await using other = await open("4s");
    const server = standIns[agent] as HttpStandIn;
    server.fail("500");
    const ask = async () => (await other.rest.call("chat.send", { body: { message: "hi", agent } })).problem.detail;
    await Promise.all(Array.from({ length: 5 }, ask));
    expect(await ask()).toMatch(/has failed several times in a row and gets no requests for a while\.$/);
    // None of the five was retried, although each deadline would allow it.
    expect(server.seen).toHaveLength(5);
  });
});
