import { describe, expect, it } from "vitest";
import { type SomeConfig, startGateway, type TestGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { openSocket } from "../wire/ws/socket.ts";
import { startA2aAgent } from "./stand-ins/a2a-agent.ts";
import { agentProgram } from "./stand-ins/acp.ts";
import { startHttpAgent } from "./stand-ins/http-agent.ts";

/** Its reply is the turn that it received. */
const REPEATS = ["sh", "-c", 'read -r turn; printf %s "$turn"'];
const LOOP = "the agent was not called: it passed through 3 or more announcements or agents, as in a loop";

async function openWith(agents: SomeConfig["agents"]) {
  const gateway = await startGateway({ config: { gateway: { defaultAgent: Object.keys(agents ?? {})[0] }, agents } });
  const turnOf = async (turnId: unknown) => {
    const get = async () => (await gateway.rest.call("turns.get", { path: { turn_id: String(turnId) } })).json;
    await expect.poll(async () => (await get()).status, { interval: 5 }).toMatch(/^(completed|failed)$/);
    return await get();
  };
  return Object.assign(gateway, { turnOf });
}
type Gateway = Awaited<ReturnType<typeof openWith>>;

function wakeOn(gateway: TestGateway, hops: string) {
  return gateway.hooks.wake({ text: "It rings.", mode: "now" }, { headers: { "x-gateway-hops": hops } });
}

describe("F28: an agent that calls the gateway", () => {
  it("MUST end its loop with itself after three hops", async () => {
    let gateway: Gateway | undefined;
    await using service = await startHttpAgent("stream", 0, async ({ headers }) => {
      const passedOn = { "x-gateway-hops": String(headers["x-gateway-hops"]) };
      await gateway?.hooks.agent({ message: "again" }, { headers: passedOn });
    });
    await using opened = await openWith({ main: { backend: "http", http: { url: service.url } } });
    gateway = opened;
    await gateway.hooks.agent({ message: "begin" });
    await gateway.logged("turn.ended", { outcome: "failed" });
    expect(service.seen.map(({ headers }) => headers["x-gateway-hops"])).toEqual(["1", "2", "3"]);
    const { json } = await gateway.console.call("deliveries.list", { query: { surface: "hooks" } });
    const deliveries = json.deliveries as { turn_id: string }[];
    const turns = await Promise.all(deliveries.map(({ turn_id }) => opened.turnOf(turn_id)));
    expect(turns.map(({ status }) => status)).toEqual(["failed", "completed", "completed", "completed"]);
    expect(turns[0]).toMatchObject({ error: { detail: LOOP } });
  });

  it("MUST get the number of its hops in every protocol, from every surface with headers, and no call above the maximum", async () => {
    await using service = await startHttpAgent();
    await using remote = await startA2aAgent({ binding: "JSONRPC", streaming: true });
    await using gateway = await openWith({
      http: { backend: "http", http: { url: service.url } },
      a2a: { backend: "a2a", a2a: { url: remote.url } },
      command: { backend: "command", command: { run: REPEATS } },
      acp: { backend: "acp", acp: { run: agentProgram() } },
    });
    const { hooks, rest, turnOf, url } = gateway;
    const told: Record<string, (reply: string) => unknown> = {
      http: () => [service.seen.at(-1)?.headers["x-gateway-hops"], String(service.seen.at(-1)?.json.hops)],
      a2a: () => remote.seen.at(-1)?.headers["x-gateway-hops"],
      command: (reply) => String(JSON.parse(reply).hops),
      acp: (reply) => String(JSON.parse(reply)["agent-gateway/hops"]),
    };
    const doors = {
      hooks: async (agent: string, message: string, headers: Record<string, string>) =>
        (await hooks.agent({ message, agent }, { headers })).json.turnId,
      rest: async (agent: string, message: string, headers: Record<string, string>) => {
        const { json, problem } = await rest.call("chat.send", { body: { message, agent }, headers });
        return json.turn_id ?? (problem as { turn_id?: string }).turn_id;
      },
      rpc: async (agentName: string, message: string, headers: Record<string, string>) =>
        (await createRpc(url).call("agent.sendMessage", { agentName, message }, { headers })).result.turnId,
    };
    for (const agent of Object.keys(told)) {
      for (const [door, send] of Object.entries(doors)) {
        // Each surface has another number, so that no answer can be confused with another.
        const hops = Object.keys(doors).indexOf(door);
        const headers: Record<string, string> = hops === 0 ? {} : { "x-gateway-hops": String(hops) };
        const { reply } = await turnOf(await send(agent, "do: meta", headers));
        const expected = String(hops + 1);
        expect([agent, door, told[agent]?.(String(reply))]).toEqual([
          agent,
          door,
          agent === "http" ? [expected, expected] : expected,
        ]);
      }
      const { status, error } = await turnOf(await doors.hooks(agent, "do: meta", { "x-gateway-hops": "3" }));
      expect([agent, status, error]).toMatchObject([agent, "failed", { detail: LOOP }]);
    }
    expect(service.seen).toHaveLength(3);
  });

  it("MUST get the hops of calls over a WebSocket: of its upgrade for all calls, or of a single call", async () => {
    await using service = await startHttpAgent();
    await using gateway = await openWith({ main: { backend: "http", http: { url: service.url } } });
    const endOf = async (header: string | undefined, params: object) => {
      using socket = await openSocket(gateway, header === undefined ? {} : { headers: { "x-gateway-hops": header } });
      const { turnId } = await socket.call("agent.sendMessage", { agentName: "main", message: "hello", ...params });
      return await gateway.turnOf(turnId);
    };
    await endOf(undefined, {});
    await endOf("1", {});
    await endOf(undefined, { hops: 1 });
    // With two numbers, the larger one is used.
    await endOf("1", { hops: 2 });
    await endOf("2", { hops: 0 });
    expect(service.seen.map(({ headers }) => headers["x-gateway-hops"])).toEqual(["1", "2", "2", "3", "3"]);
    for (const [header, params] of [
      ["3", {}],
      ["no number", {}],
      [undefined, { hops: 3 }],
    ] as const)
      expect(await endOf(header, params)).toMatchObject({ status: "failed", error: { detail: LOOP } });
    const { call } = createRpc(gateway.url);
    const sent = { agentName: "main", message: "hello" };
    expect((await call("agent.sendMessage", { ...sent, hops: 4 })).error?.data.name).toBe("invalid-params");
    const overHttp = await call("agent.sendMessage", { ...sent, hops: 3 }, { headers: { "x-gateway-hops": "1" } });
    expect(await gateway.turnOf(overHttp.result.turnId)).toMatchObject({ error: { detail: LOOP } });
  });

  it("MUST get the hops of events, too, which are refused above the maximum", async () => {
    await using service = await startHttpAgent();
    await using gateway = await openWith({ main: { backend: "http", http: { url: service.url } } });
    const refused = await wakeOn(gateway, "3");
    expect([refused.status, refused.problem.detail]).toEqual([
      400,
      "The event is refused: it passed through 3 or more announcements or agents, as in a loop.",
    ]);
    expect((await wakeOn(gateway, "2")).status).toBe(200);
    expect((await service.next()).headers["x-gateway-hops"]).toBe("3");
    // The hops of an event cannot make the other events of its beat fail.
    await gateway.hooks.wake({ text: "It lies.", mode: "now", metadata: { "x-gateway-hops": 9 } });
    expect((await service.next()).headers["x-gateway-hops"]).toBe("3");
  });

  it("MUST answer if its agent calls no other service", async () => {
    await using gateway = await openWith({ main: { backend: "echo" } });
    const headers = { "x-gateway-hops": "3" };
    const { json } = await gateway.rest.call("chat.send", { body: { message: "hello" }, headers });
    expect(json.reply).toBe("hello");
  });
});
