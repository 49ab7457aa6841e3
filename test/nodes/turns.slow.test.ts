import { describe, expect, it } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import { startNodes } from "./nodes.ts";

await postgresTests((server) => {
  describe("turns of several gateways", () => {
    it("run one at a time and in order in each session, wherever they are sent and wherever they run", async () => {
      await using nodes = await startNodes(server, 3, {
        config: { agents: { main: { backend: "echo", echo: { delayMs: 2 } } } },
      });
      const sessions = ["one", "two", "three"];
      const sent: { sessionId: string; turnId: string; message: string }[] = [];
      for (let n = 0; n < 30; n++) {
        const message = `${n}`;
        const sessionId = sessions[n % 3] as string;
        // Not to the node that follows: each session is sent to on all three.
        const node = nodes.at(Math.floor(n / 3) + n);
        const { result } = await node.rpc.call("agent.sendMessage", { agentName: "main", message, sessionId });
        sent.push({ sessionId, turnId: result.turnId, message });
      }
      const { store } = nodes.at(0).gateway;
      const states = async () => {
        const turns = await Promise.all(sent.map(({ turnId }) => store.getTurn(turnId)));
        return [...new Set(turns.map((turn) => turn?.status))];
      };
      await expect.poll(states, { timeout: 10_000 }).toEqual(["completed"]);
      for (const session of sessions) {
        const entries = await store.readEntries(session, { after: 0, limit: 1_000 });
        expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, n) => n + 1));
        const ran = entries.filter(({ name }) => name === "turn.started" || name === "turn.completed");
        const order = sent.filter(({ sessionId }) => sessionId === session).map(({ turnId }) => turnId);
        expect(ran.map(({ turnId }) => turnId)).toEqual(order.flatMap((turnId) => [turnId, turnId]));
        expect(ran.map(({ name }) => name)).toEqual(order.flatMap(() => ["turn.started", "turn.completed"]));
      }
    });
  });
});
