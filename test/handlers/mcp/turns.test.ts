import { describe, expect, it } from "vitest";
import { ADMIN, CHAT, refusal, startTools, turnOf } from "./start-tools.ts";

type Tools = Awaited<ReturnType<typeof startTools>>;

/** Starts a turn of `main` as a task; the agent has not answered yet. */
async function begun(made: Tools) {
  const task = await made.begin("ask_main", { message: "hi" });
  if (!task?.turn) throw new Error("no turn was started");
  return { turnId: task.turn.turnId, task, run: await made.next() };
}

describe("turn_get", () => {
  it("reads a turn at once, and waits for its end only if it is asked to", async () => {
    await using made = await startTools();
    const { turnId: turn_id, run } = await begun(made);
    expect(await made.call("turn_get", { turn_id })).toMatchObject({
      text: `The turn ${turn_id} is still running. Call turn_get with this turn_id and wait_seconds 50 to get the reply.`,
      structured: { turn_id, status: "running", reply: null, caller: null },
    });
    const waiting = made.call("turn_get", { turn_id, wait_seconds: 50 });
    await made.clock.advance(10_000);
    made.say(run, "at last");
    expect(await waiting).toMatchObject({ text: "at last", structured: { status: "completed", reply: "at last" } });
  });

  it("stops waiting after its time, and after the longest time of a call", async () => {
    await using made = await startTools();
    const { turnId: turn_id } = await begun(made);
    const ends: string[] = [];
    const short = made.call("turn_get", { turn_id, wait_seconds: 5 }).then(() => ends.push("5 s"));
    const cut = made.call("turn_get", { turn_id, wait_seconds: 50 }, { waitMs: 8_000 }).then(() => ends.push("8 s"));
    await made.clock.advance(5_000);
    expect(ends).toEqual(["5 s"]);
    await made.clock.advance(3_000);
    expect(ends).toEqual(["5 s", "8 s"]);
    await Promise.all([short, cut]);
  });

  it("reads a failed and a cancelled turn without an error of its own", async () => {
    await using made = await startTools();
    const failed = await begun(made);
    failed.run.fail(new Error("it broke"));
    await made.ended({ turnId: failed.turnId });
    const answer = await made.call("turn_get", { turn_id: failed.turnId });
    expect(answer?.isError).toBeUndefined();
    expect(answer?.text).toMatch(/^Turn failed: /);
    const cancelled = await begun(made);
    await made.tools.cancel(cancelled.turnId, CHAT);
    expect((await made.call("turn_get", { turn_id: cancelled.turnId }))?.text).toMatch(/^Turn cancelled: /);
  });

  it("shows the words of the caller only to a key with more than the scope chat, as in REST", async () => {
    await using made = await startTools();
    const { turnId: turn_id } = await begun(made);
    expect((await made.call("turn_get", { turn_id }))?.structured).toMatchObject({ caller: null, preview: null });
    const shown = await made.call("turn_get", { turn_id }, { caller: ADMIN });
    expect(shown?.structured).toMatchObject({ caller: "chat", preview: "hi" });
  });

  it.each([
    [{}, "invalid-request", "turn_id is required."],
    [{ turn_id: "turn_1" }, "turn-not-found", "No turn has the id turn_1."],
    [{ turn_id: "turn_1", wait_seconds: 51 }, "invalid-request", "wait_seconds must be at most 50."],
    [{ turn_id: "turn_1", wait_seconds: -1 }, "invalid-request", "wait_seconds must be at least 0."],
    [{ turn_id: "turn_1", wait_seconds: 1.5 }, "invalid-request", "wait_seconds must be an integer."],
  ])("answers %j with its fault", async (args, error, words) => {
    await using made = await startTools();
    const answer = await made.call("turn_get", args);
    expect(answer).toMatchObject({ isError: true, error });
    expect(answer?.text).toContain(words);
  });

  it("changes nothing, however often it is called", async () => {
    await using made = await startTools();
    const { turnId: turn_id, run } = await begun(made);
    made.say(run, "done");
    await made.ended({ turnId: turn_id });
    const first = await made.call("turn_get", { turn_id });
    expect(await made.call("turn_get", { turn_id })).toEqual(first);
  });

  it("reports a turn whose session is deleted while it waits", async () => {
    await using made = await startTools();
    const { turnId: turn_id, task } = await begun(made);
    const waiting = made.call("turn_get", { turn_id, wait_seconds: 50 });
    await made.clock.settle();
    await made.core.sessions.delete(task.turn.sessionId, undefined);
    expect(await waiting).toMatchObject({ isError: true, error: "turn-not-found" });
  });
});

describe("a task", () => {
  it("is a stored turn, and has the answer of the call once it has ended", async () => {
    await using made = await startTools();
    const { turnId, task, run } = await begun(made);
    expect(task).toMatchObject({ status: "working", answer: undefined });
    expect(await made.store.getTurn(turnId)).toMatchObject({ status: "running" });
    expect(await made.tools.task(turnId, CHAT)).toMatchObject({ status: "working", answer: undefined });
    made.say(run, "done");
    await made.ended({ turnId });
    const ended = await made.tools.task(turnId, CHAT);
    expect(ended).toMatchObject({ status: "completed", answer: { text: "done" } });
    expect(turnOf(ended.answer).turn_id).toBe(turnId);
  });

  it("is there at once with its answer if the turn ends within the waiting time", async () => {
    await using made = await startTools();
    const started = made.begin("ask_main", { message: "hi" }, { waitMs: 1_000 });
    made.say(await made.next(), "quick");
    expect(await started).toMatchObject({ status: "completed", answer: { text: "quick" } });
    const slow = made.begin("ask_main", { message: "hi" }, { waitMs: 1_000 });
    await made.next();
    await made.clock.advance(1_000);
    expect(await slow).toMatchObject({ status: "working" });
  });

  it("is cancelled with its turn, and stays so", async () => {
    await using made = await startTools();
    const { turnId } = await begun(made);
    const cancelled = await made.tools.cancel(turnId, CHAT);
    expect(cancelled).toMatchObject({ status: "cancelled", answer: { isError: true, error: "turn-cancelled" } });
    expect(await made.tools.cancel(turnId, CHAT)).toEqual(await made.tools.task(turnId, CHAT));
  });

  it("fails with its turn", async () => {
    await using made = await startTools();
    const { turnId, run } = await begun(made);
    run.fail(new Error("it broke"));
    await made.ended({ turnId });
    expect(await made.tools.task(turnId, CHAT)).toMatchObject({
      status: "failed",
      answer: { isError: true, error: "turn-failed", structured: { status: "failed" } },
    });
  });

  it("exists only for callers who may read its turn by REST", async () => {
    await using made = await startTools();
    const { turnId } = await begun(made);
    const stranger = { ...CHAT, agents: ["other"] };
    for (const asked of [made.tools.task(turnId, stranger), made.tools.cancel(turnId, stranger)])
      expect(await refusal(asked)).toEqual({ name: "turn-not-found", message: `No turn has the id ${turnId}.` });
    expect(await refusal(made.tools.task("turn_1", CHAT))).toMatchObject({ name: "turn-not-found" });
    expect(await made.tools.task(turnId, { ...CHAT, agents: ["main"] })).toMatchObject({ status: "working" });
  });

  it("is not started for arguments that the schema does not allow, and the answer says why", async () => {
    await using made = await startTools();
    const refused = await made.begin("ask_main", { text: "hi" });
    expect(refused).toMatchObject({ answer: { isError: true, error: "invalid-request" } });
    expect(refused?.turn).toBeUndefined();
    expect(await made.begin("turn_get", { turn_id: "turn_1" })).toBeUndefined();
    expect(await made.begin("nothing")).toBeUndefined();
  });
});
