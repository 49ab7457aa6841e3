import { describe, expect, it } from "vitest";
import type { Backend } from "#backends/backend.ts";
import { ChunkQueue } from "#backends/outbound/chunk-queue.ts";
import { BackendError } from "#kit/errors.ts";
import { startCore } from "./start-core.ts";

/** A backend whose replies are heard as they come; a test plays the one that runs. */
const startHeard = async () => {
  let begin = (_chunks: ChunkQueue) => {};
  const begun = new Promise<ChunkQueue>((resolve) => (begin = resolve));
  let hasLeft = false;
  const run = () => {
    const chunks: ChunkQueue = new ChunkQueue({
      begin: () => begin(chunks),
      full: () => {},
      leave: () => {
        hasLeft = true;
      },
    });
    return chunks;
  };
  const backend: Backend = { kind: "heard", models: undefined, run, summarise: async () => "" };
  const core = await startCore({ backend });
  const turn = await core.start();
  return {
    core,
    turn,
    chunks: await begun,
    hasLeft: () => hasLeft,
    [Symbol.asyncDispose]: () => core[Symbol.asyncDispose](),
  };
};

describe("a reply that is heard", () => {
  it("is all that was said until it is over, with what was used", async () => {
    await using heard = await startHeard();
    for (const text of ["good ", "mor", "ning"]) heard.chunks.push({ text });
    heard.chunks.push({ usage: { input: 3, output: 2 } });
    heard.chunks.end();
    expect(await heard.core.ended(heard.turn)).toMatchObject({
      status: "completed",
      reply: "good morning",
      usage: { input: 3, output: 2 },
    });
    expect(heard.hasLeft()).toBe(false);
  });

  it("fails as its backend does, with what was said before", async () => {
    await using heard = await startHeard();
    heard.chunks.push({ text: "so far" });
    heard.chunks.fail(new BackendError("it broke off", { retryable: true }));
    const { status, error } = await heard.core.ended(heard.turn);
    expect([status, error?.detail]).toEqual(["failed", "it broke off"]);
  });

  it("is left at once when its turn is cancelled, and what comes then touches nothing", async () => {
    await using heard = await startHeard();
    heard.chunks.push({ text: "so far" });
    await heard.core.core.turns.cancel(heard.turn.turnId);
    const ended = await heard.core.ended(heard.turn);
    expect(heard.hasLeft()).toBe(true);
    heard.chunks.push({ text: " and more" });
    heard.chunks.end();
    expect([ended.status, ended.reply]).toEqual(["cancelled", "so far"]);
    expect(await heard.core.core.turns.get(heard.turn.turnId)).toEqual(ended);
  });

  it("F08: is left when it grows past 4 MiB, and fails", async () => {
    await using heard = await startHeard();
    for (let n = 0; n < 5; n++) heard.chunks.push({ text: "x".repeat(1024 * 1024) });
    expect(await heard.core.ended(heard.turn)).toMatchObject({
      status: "failed",
      error: { detail: "the reply is longer than 4 MiB" },
    });
    expect(heard.hasLeft()).toBe(true);
  });

  it("is no reply where something is told that is no chunk", async () => {
    await using heard = await startHeard();
    heard.chunks.push({ nothing: 1 } as never);
    const { status, error } = await heard.core.ended(heard.turn);
    expect([status, error?.detail]).toEqual(["failed", "the agent's backend failed"]);
    expect(heard.hasLeft()).toBe(true);
  });
});
