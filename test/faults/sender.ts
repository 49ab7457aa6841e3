import { expect } from "vitest";
import type { Reply } from "#test/harness/rest.ts";
import { type Client, until } from "./nodes.ts";

/** Sends wakes and turns, and records the acknowledged ones. */
export function createSender(client: Client) {
  const acknowledged: { events: string[]; turns: string[] } = { events: [], turns: [] };
  let sent = 0;
  const note = (list: string[], { status, json }: Reply, name: string) =>
    status === 200 && list.push(String(json[name]));
  return {
    acknowledged,
    async wake(to = client): Promise<Reply> {
      const reply = await to.wake({ text: `<event-${++sent}>` });
      note(acknowledged.events, reply, "eventId");
      return reply;
    },
    async turn(to = client): Promise<Reply> {
      const reply = await to.agent({ message: `turn ${++sent}`, agent: "slow" });
      note(acknowledged.turns, reply, "turnId");
      return reply;
    },
  };
}

/** All acknowledged work is done, and no event was in two turns. */
export async function expectKept(client: Client, { events, turns }: ReturnType<typeof createSender>["acknowledged"]) {
  for (const id of turns) await until(async () => (await client.turn(id)).status === "completed");
  for (const id of events) await until(async () => (await client.event(id)).status === "handled");
  const { result } = await client.rpc.call("session.get", { sessionId: "agent:quick:main", limit: 500 });
  const told = result.messages
    .filter(({ role }) => role === "user")
    .flatMap(({ text }) => text.match(/<event-\d+>/g) ?? []);
  expect(new Set(told).size).toBe(told.length);
  expect(told.length).toBeGreaterThanOrEqual(events.length);
}

/** It accepts work again. */
export function recovered(client: Client, send: () => Promise<Reply>) {
  return until(async () => (await client.ready()) === 200 && (await send()).status === 200);
}
