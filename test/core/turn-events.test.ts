import { describe, expect, it } from "vitest";
import type { StepMark, TurnStep } from "#core/turns/turn-events.ts";
import { BackendError } from "#kit/errors.ts";
import type { Turn } from "#store/store.ts";
import { ENTRIES, entriesOf, isSaid, namesOf, startCore, type TestCore, textOf } from "./start-core.ts";

/** Reads steps one by one, at the reader's own speed. */
function readSlowly({ core }: TestCore, turn: Turn, from?: StepMark) {
  const steps = core.followTurn(turn, from, (step) => [step]);
  return async (): Promise<TurnStep | undefined> => {
    const { done, value } = await steps.next();
    return done ? undefined : value;
  };
}

describe("the steps of a turn", () => {
  it("are its entries and the pieces of its reply, in order, until it ends", async () => {
    await using core = await startCore();
    const reader = core.follow(await core.start());
    const run = await core.scripted.next();
    for (const text of ["good ", "mor", "ning"]) {
      run.say(text);
      await reader.until(isSaid(text));
    }
    run.end();
    const steps = await reader.done;
    expect(namesOf(steps)).toEqual([
      "turn.queued",
      "turn.started",
      "message.created",
      "+good ",
      "+mor",
      "+ning",
      "message.completed",
      "turn.completed",
    ]);
    const deltas = steps.filter((step) => step.kind === "delta");
    expect(deltas.map(({ offset }) => offset)).toEqual([0, 5, 8]);
    for (const step of steps) {
      if (step.kind === "entry") expect(step.mark).toEqual({ seq: step.entry.seq, offset: 0 });
      else expect(step.mark).toEqual({ seq: step.seq, offset: step.offset + step.text.length });
    }
    const [created] = await core.store.readEntries("chat:a", { after: 3, limit: 1 });
    for (const delta of deltas)
      expect(delta).toMatchObject({ seq: created?.seq, messageId: expect.stringMatching(/^msg_/) });
  });

  it("joined together are the reply, including what arrived with the end", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const next = readSlowly(core, turn);
    for (const name of ENTRIES.slice(0, 3)) expect(await next()).toMatchObject({ entry: { name } });
    const run = await core.scripted.next();
    run.say("said before anybody looked, ");
    run.say("and the turn is over");
    run.end();
    await core.ended(turn);
    const steps = [await next(), await next(), await next(), await next()];
    expect(namesOf(steps.slice(0, 3) as TurnStep[])).toEqual([
      "+said before anybody looked, and the turn is over",
      "message.completed",
      "turn.completed",
    ]);
    expect(steps[3]).toBeUndefined();
  });

  it("reach a slow reader in larger pieces, not in more pieces", async () => {
    await using core = await startCore();
    const next = readSlowly(core, await core.start());
    for (let n = 0; n < 3; n++) await next();
    const run = await core.scripted.next();
    run.say("first");
    expect(await next()).toMatchObject({ offset: 0, text: "first" });
    for (let n = 0; n < 1_000; n++) run.say("x");
    await core.clock.settle();
    expect(await next()).toMatchObject({ offset: 5, text: "x".repeat(1_000) });
    run.end();
    expect(namesOf([(await next()) as TurnStep])).toEqual(["message.completed"]);
  });

  it("are one piece for all text of one tick of the event loop", async () => {
    await using core = await startCore();
    const reader = core.follow(await core.start());
    const run = await core.scripted.next();
    for (let n = 0; n < 200; n++) run.say(`${n} `);
    await reader.until(isSaid(Array.from({ length: 200 }, (_, n) => `${n} `).join("")));
    run.end();
    expect(namesOf(await reader.done).slice(-2)).toEqual(["message.completed", "turn.completed"]);
    expect(reader.steps.filter((step) => step.kind === "delta")).toHaveLength(1);
  });

  it("start with all that was written so far for a reader that joins in the middle", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const run = await core.scripted.next();
    for (const text of ["one ", "two "]) run.say(text);
    await core.clock.settle();
    const reader = core.follow(turn);
    await reader.until(isSaid("one two "));
    run.say("three");
    run.end();
    expect(namesOf(await reader.done).slice(3)).toEqual(["+one two ", "+three", "message.completed", "turn.completed"]);
  });

  it("continue with the rest for a reader that returns in the middle, also if the turn ends before it reads", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const run = await core.scripted.next();
    run.say("one ");
    const reader = core.follow(turn);
    await reader.until(isSaid("one "));
    const next = readSlowly(core, turn, reader.steps.at(-1)?.mark);
    run.say("two");
    run.end();
    await core.ended(turn);
    expect(namesOf([await next(), await next(), await next()] as TurnStep[])).toEqual([
      "+two",
      "message.completed",
      "turn.completed",
    ]);
  });

  it("have no pieces for a reader that joins after the end: the complete reply is in its entry", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const run = await core.scripted.next();
    run.say("over");
    run.end();
    const late = core.follow(await core.ended(turn));
    const steps = await late.done;
    expect(namesOf(steps)).toEqual(ENTRIES);
    expect(steps[3]).toMatchObject({ entry: { text: "over" } });
  });

  it("are the same for any number of readers", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const readers = Array.from({ length: 5 }, () => core.follow(turn));
    const run = await core.scripted.next();
    for (const text of ["a", "b", "c"]) run.say(text);
    run.end();
    for (const { done } of readers) {
      const steps = await done;
      expect(textOf(steps)).toBe("abc");
      expect(entriesOf(steps)).toEqual(ENTRIES);
    }
  });

  it("contain nothing of the session's other turns", async () => {
    await using core = await startCore();
    await core.start({ text: "before" });
    const turn = await core.start({ text: "mine" });
    const reader = core.follow(turn);
    (await core.scripted.next()).end();
    const run = await core.scripted.next();
    run.say("one ");
    await reader.until(isSaid("one "));
    await core.start({ text: "after" });
    run.say("two");
    await reader.until(isSaid("two"));
    run.end();
    const steps = await reader.done;
    expect(textOf(steps)).toBe("one two");
    const turnIds = steps.flatMap((step) => (step.kind === "entry" ? [step.entry.turnId] : []));
    expect(new Set(turnIds)).toEqual(new Set([turn.turnId]));
  });

  it("start the reply again with each attempt", async () => {
    await using core = await startCore();
    const reader = core.follow(await core.start());
    (await core.scripted.next()).fail(new BackendError("busy", { retryable: true }));
    await core.clock.advance(500);
    const run = await core.scripted.next();
    run.say("at last");
    run.end();
    const steps = await reader.done;
    expect(entriesOf(steps)).toEqual([...ENTRIES.slice(0, 3), ...ENTRIES]);
    expect(steps.filter((step) => step.kind === "delta").map(({ offset }) => offset)).toEqual([0]);
    expect(textOf(steps)).toBe("at last");
  });

  it("omit nothing if the journal has more entries than are read at a time", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const next = readSlowly(core, turn);
    await next();
    for (let n = 0; n < 450; n++) await core.start({ text: "behind it" });
    const run = await core.scripted.next();
    run.say("done");
    run.end();
    await core.ended(turn);
    const names: string[] = [];
    for (let step = await next(); step; step = await next()) names.push(...namesOf([step]));
    expect(names).toEqual(["turn.started", "message.created", "+done", "message.completed", "turn.completed"]);
  });

  it("include the start of a reply before its pieces, however slow the store is", async () => {
    let release: (() => void) | undefined;
    let isSlow = true;
    await using core = await startCore({
      wrapStore: (store) => ({
        readEntries: async (...query) => {
          const entries = await store.readEntries(...query);
          const waits = isSlow;
          isSlow = false;
          if (waits) await new Promise<void>((resolve) => (release = resolve));
          return entries;
        },
      }),
    });
    await core.start({ text: "before it" });
    const reader = core.follow(await core.start());
    (await core.scripted.next()).end();
    const run = await core.scripted.next();
    run.say("hi");
    await core.clock.settle();
    release?.();
    await reader.until(isSaid("hi"));
    expect(namesOf(reader.steps)).toEqual([...ENTRIES.slice(0, 3), "+hi"]);
    reader.stop();
  });

  it("end with what was written if the turn failed or was cancelled", async () => {
    await using core = await startCore();
    for (const how of ["failed", "cancelled"] as const) {
      const turn = await core.start({ session: `chat:${how}` });
      const reader = core.follow(turn);
      const run = await core.scripted.next();
      run.say("half");
      await reader.until(isSaid("half"));
      if (how === "failed") run.fail(new Error("boom"));
      else await core.turns.cancel(turn.turnId);
      expect(namesOf(await reader.done).slice(3)).toEqual(["+half", "message.completed", `turn.${how}`]);
    }
  });
});
