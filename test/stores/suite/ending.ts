import { describe, expect } from "vitest";
import { expectFields } from "../fields.ts";
import { testsOn } from "../tests-on.ts";
import { type Engine, NO_USAGE, refusal, used } from "../world.ts";

const REMOVED = { name: "agent-removed", detail: "gone" } as const;

export function endingTests(engine: Engine): void {
  const it = testsOn(engine);
  describe("ending a turn", () => {
    it("stores the reply, the usage and the entries of a completed turn", async ({ world }) => {
      const { turnId } = await world.start();
      const claimed = await world.claimNext();
      await world.clock.advance(70);
      const at = world.clock.now();
      expect(await world.end(claimed, { reply: "hi", usage: used(2, 1) })).toBe(true);
      const usage = { input: 2, output: 1 };
      const turn = { status: "completed", reply: "hi", replyPreview: "hi", error: undefined, usage, endedAt: at };
      expect(await world.store.getTurn(turnId)).toEqual({ ...claimed.turn, ...turn });
      const { replyMessageId: messageId } = claimed;
      expect((await world.entries()).slice(4)).toEqual([
        { seq: 5, at, turnId, name: "message.completed", messageId, text: "hi" },
        { seq: 6, at, turnId, name: "turn.completed", usage, reply: "hi" },
      ]);
      const [reply] = await world.store.readMessages("chat:a", { limit: 1 });
      expect(reply).toEqual({
        messageId,
        role: "assistant",
        text: "hi",
        turnId,
        seq: 5,
        createdAt: at,
        outside: false,
        compacted: false,
      });
      const session = { messageCount: 2, turnsQueued: 0, lastSeq: 6, updatedAt: at, usage };
      expect(await world.store.getSession("chat:a")).toMatchObject(session);
    });

    it("stores the tool calls with the reply", async ({ world }) => {
      await world.start();
      const toolCalls = [
        { tool: "find_order", ok: true, ms: 12 },
        { tool: "refund", ok: false, ms: 3, at: 5, reason: "of \u0000 none", arguments: '{"a":"\u0000\u202e🙂"}' },
        { tool: "say", ok: true, ms: 3, at: 6, arguments: "{}", result: "\u0000\u001b[2J\u202e\ufffd" },
      ];
      await world.end(await world.claimNext(), { reply: "hi", toolCalls });
      expect((await world.entries())[4]).toMatchObject({ name: "message.completed", text: "hi", toolCalls });
      const messages = await world.store.readMessages("chat:a", { limit: 1, includeToolCalls: true });
      expect(messages).toMatchObject([{ text: "hi", toolCalls }]);
    });

    it("stores an empty reply of a completed turn", async ({ world }) => {
      const { turnId } = await world.start();
      await world.end(await world.claimNext(), { reply: "" });
      expect(await world.store.getTurn(turnId)).toMatchObject({ status: "completed", reply: "", usage: NO_USAGE });
      expect((await world.names()).slice(4)).toEqual(["message.completed", "turn.completed"]);
    });

    for (const status of ["failed", "cancelled"] as const) {
      it(`stores the written part of a ${status} turn's reply`, async ({ world }) => {
        const { turnId } = await world.start();
        await world.end(await world.claimNext(), { status, reply: "half a re", usage: used(3, 2) });
        const turn = await world.store.getTurn(turnId);
        expect(turn).toMatchObject({ status, reply: "half a re", usage: { input: 3, output: 2 } });
        expect((await world.names()).slice(4)).toEqual(["message.completed", `turn.${status}`]);
        expect(await world.store.readMessages("chat:a", { limit: 1 })).toMatchObject([{ text: "half a re" }]);
      });

      it(`stores no message for a ${status} turn that wrote nothing`, async ({ world }) => {
        const { turnId } = await world.start();
        await world.end(await world.claimNext(), { status });
        expect((await world.store.getTurn(turnId))?.reply).toBeUndefined();
        expect((await world.names()).slice(4)).toEqual([`turn.${status}`]);
        expect(await world.store.getSession("chat:a")).toMatchObject({ messageCount: 1 });
      });
    }

    it("stores the error of a failed turn, in the turn and its entry", async ({ world }) => {
      const { turnId } = await world.start();
      const error = { name: "turn-timeout", detail: "too slow" } as const;
      await world.end(await world.claimNext(), { status: "failed", error });
      expect(await world.store.getTurn(turnId)).toMatchObject({ error });
      expect((await world.entries()).at(-1)).toMatchObject({ name: "turn.failed", error });
    });

    it("stores nothing for a claim that is no longer valid", async ({ world }) => {
      const { turnId } = await world.start();
      const first = await world.claimNext();
      await world.release(first);
      const second = await world.claimNext();
      const read = () => world.everything(["chat:a"], [turnId]);
      const before = await read();
      const wrongNode = { claim: { ...second.claim, node: "node_b" } };
      const unknown = { claim: { ...second.claim, turnId: "turn_unknown" } };
      for (const claimed of [first, wrongNode, unknown]) {
        expect(await world.end(claimed, { reply: "late", usage: used(9, 9) })).toBe(false);
        expect(await world.release(claimed, 0, used(9, 9))).toBe(false);
      }
      expect(await read()).toEqual(before);
      expect(await world.store.readUsage({ from: 0, to: Infinity })).toMatchObject([{ attempts: 0, input: 0 }]);
      expect(await world.end(second, { reply: "mine" })).toBe(true);
      expect(await world.end(second, { reply: "twice" })).toBe(false);
      expect(await world.store.getTurn(turnId)).toMatchObject({ reply: "mine" });
    });
  });

  describe("cancelling a turn", () => {
    it("ends a queued turn immediately, and the next turn of its session can be claimed", async ({ world }) => {
      const [first, second, third] = [await world.start(), await world.start(), await world.start()];
      const at = world.clock.now();
      const answer = await world.store.cancelTurn(first.turnId, at);
      expectFields(answer, { status: "cancelled", attempt: 0, endedAt: at, reply: undefined });
      expect(await world.store.getTurn(first.turnId)).toEqual(answer);
      await world.store.cancelTurn(second.turnId, at);
      expect((await world.claimNext()).turn.turnId).toBe(third.turnId);
      expect(await world.store.getSession("chat:a")).toMatchObject({ turnsQueued: 0 });
      expect((await world.names()).filter((name) => name === "turn.cancelled")).toHaveLength(2);
    });

    it("returns a running turn unchanged, and leaves its end to the gateway that runs it", async ({ world }) => {
      const { turnId } = await world.start();
      const claimed = await world.claimNext();
      expect(await world.store.cancelTurn(turnId, world.clock.now())).toMatchObject({ turnId, status: "running" });
      expect(await world.end(claimed, { status: "cancelled", reply: "half" })).toBe(true);
      expect(await world.store.getTurn(turnId)).toMatchObject({ status: "cancelled", reply: "half" });
    });

    it("refuses a turn that has ended or does not exist", async ({ world }) => {
      const now = world.clock.now();
      const { turnId } = await world.start();
      await world.end(await world.claimNext());
      expect(await refusal(world.store.cancelTurn(turnId, now))).toBe("turn-ended");
      expect(await refusal(world.store.cancelTurn("turn_unknown", now))).toBe("turn-not-found");
      const { turnId: other } = await world.start();
      await world.store.cancelTurn(other, now);
      expect(await refusal(world.store.cancelTurn(other, now))).toBe("turn-ended");
    });
  });

  describe("failing an agent's queued turns", () => {
    it("fails each of them and returns their number, but no running turn and no turn of another agent", async ({
      world,
    }) => {
      const running = await world.start({ agent: "gone", session: "chat:1" });
      await world.claimNext();
      const behind = await world.start({ agent: "gone", session: "chat:1" });
      const ready = await world.start({ agent: "gone", session: "chat:2" });
      const other = await world.start({ agent: "stays", session: "chat:3" });
      expect(await world.store.failQueuedTurns("gone", REMOVED, world.clock.now())).toBe(2);
      const statusOf = async ({ turnId }: { turnId: string }) => (await world.store.getTurn(turnId))?.status;
      expect(await statusOf(running)).toBe("running");
      expect(await statusOf(other)).toBe("queued");
      for (const { turnId } of [behind, ready]) {
        expect(await world.store.getTurn(turnId)).toMatchObject({ status: "failed", error: REMOVED });
      }
      expect((await world.entries("chat:2")).at(-1)).toMatchObject({ name: "turn.failed", error: REMOVED });
      expect((await world.claim()).turns.map(({ turn }) => turn.turnId)).toEqual([other.turnId]);
      expect(await world.store.failQueuedTurns("gone", REMOVED, world.clock.now())).toBe(0);
    });

    it("fails a released turn during its delay", async ({ world }) => {
      const { turnId } = await world.start();
      await world.release(await world.claimNext(), 1_000);
      expect(await world.store.failQueuedTurns("main", REMOVED, world.clock.now())).toBe(1);
      await world.clock.advance(1_000);
      expect((await world.claim()).turns).toEqual([]);
      expect(await world.store.getTurn(turnId)).toMatchObject({ status: "failed" });
    });
  });
}
