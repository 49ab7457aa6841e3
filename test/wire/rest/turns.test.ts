import { describe, expect, test } from "vitest";
import type { RestReplies } from "#generated/rest-handlers.ts";
import { createPuppet } from "#test/harness/backends.ts";
import { shareGateway, startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";

const puppet = createPuppet();
const { console, rest } = await shareGateway({ makeBackend: () => puppet.backend, replyWaitMs: 1 });
async function list(query: Record<string, string> = {}) {
  return (await console.call("turns.list", { query })).json as unknown as RestReplies["turns.list"];
}
async function send(session_id: string) {
  return String((await rest.call("chat.send", { body: { message: "hi", session_id } })).json.turn_id);
}
function idsOf({ turns }: RestReplies["turns.list"]) {
  return turns.map(({ turn_id }) => turn_id);
}

describe("turns.list", () => {
  test("shows running and waiting turns, each as turns.get does but without the reply", async () => {
    const first = await send("s-1");
    const second = await send("s-1");
    const played = await puppet.next();
    expect(idsOf(await list({ status: "running" }))).toEqual([first]);
    expect(idsOf(await list({ status: "queued" }))).toEqual([second]);
    expect(idsOf(await list({ session_id: "s-1" }))).toEqual([second, first]);
    played.end();
    (await puppet.next()).end();
    await expect.poll(async () => idsOf(await list({ status: "completed" }))).toEqual([second, first]);
    const { reply, ...turn } = (await console.call("turns.get", { path: { turn_id: first } })).json;
    expect((await list({ session_id: "s-1" })).turns[1]).toEqual(turn);
    const page = await list({ limit: "1" });
    expect(idsOf(page)).toEqual([second]);
    expect(idsOf(await list({ limit: "1", cursor: String(page.next_cursor) }))).toEqual([first]);
  });

  test.each([
    ["as it is", "agent:main:rest:a b", "agent:main:rest:a+b"],
    ["in percent", "agent:main:rest:c d", "agent%3Amain%3Arest%3Ac%20d"],
  ])("accepts a session's id %s, with a space in either form", async (_, session_id, written) => {
    const turn = await send(session_id);
    const { json } = await console.send("GET", `/api/v1/turns?session_id=${written}`);
    expect(idsOf(json as unknown as RestReplies["turns.list"])).toEqual([turn]);
    (await puppet.next()).end();
  });
});

describe("a key of the scope chat", () => {
  const keys = [
    { name: "one", key: "a-key-of-the-first-caller" },
    { name: "two", key: "a-key-of-the-second-caller" },
  ];
  test("reads, follows and cancels the turn of another caller by its id, as security.md says", async () => {
    await using gateway = await startGateway({
      config: {
        gateway: { rest: { auth: { keys } } },
        agents: { main: { backend: "echo", echo: { delayMs: 600_000 } } },
      },
      replyWaitMs: 1,
    });
    const [one, two] = keys.map(({ key }) => key);
    const { json: sent } = await gateway.rest.call("chat.send", { key: one as string, body: { message: "Hello" } });
    const { result } = await createRpc(gateway.url).call("agent.sendMessage", { agentName: "main", message: "Hello" });
    const { json: hook } = await gateway.hooks.agent({ message: "Hello" });
    for (const turn of [sent.turn_id, (result as { turnId: string }).turnId, hook.turnId]) {
      const at = { key: two as string, path: { turn_id: String(turn) } };
      expect((await gateway.rest.call("turns.get", at)).json).toMatchObject({ turn_id: turn, status: "running" });
      expect((await gateway.rest.call("turns.cancel", at)).json).toMatchObject({ turn_id: turn, status: "cancelled" });
      const { events } = await gateway.rest.stream("turns.events", at);
      const names: string[] = [];
      for await (const { event } of events) names.push(event);
      expect(names.at(-1)).toBe("turn.cancelled");
    }
  });
});
