import { describe, expect, it } from "vitest";
import type { Backend, Chunk } from "#backends/backend.ts";
import { startCore, type TestCore } from "./start-core.ts";

type Run = Backend["run"];
function backendOf(run: Run): Backend {
  return { kind: "faulty", models: undefined, run, summarise: async () => "" };
}

/** An iterable with only these functions, as a faulty program may return. */
function iterable(iterator: object): AsyncIterable<Chunk> {
  return { [Symbol.asyncIterator]: () => iterator } as unknown as AsyncIterable<Chunk>;
}

function never() {
  return new Promise<never>(() => {});
}
function boom(): never {
  throw new Error("boom");
}

function stoppable() {
  const controller = new AbortController();
  return { signal: controller.signal, stop: () => controller.abort() };
}

const FAILING: Record<string, Run> = {
  "throws before it starts": boom,
  "throws a value that is not an error": () => {
    throw null;
  },
  "returns nothing": () => undefined as unknown as AsyncIterable<Chunk>,
  "returns something that cannot be iterated": () => ({}) as unknown as AsyncIterable<Chunk>,
  "throws when it is asked for its iterator": () => ({ [Symbol.asyncIterator]: boom }),
  "has an iterator without next": () => iterable({}),
  "throws from next": () => iterable({ next: boom }),
  "rejects from next with nothing": () => iterable({ next: () => Promise.reject(undefined) }),
  "rejects from next": () => iterable({ next: async () => boom() }),
  "answers next with nothing": () => iterable({ next: async () => undefined }),
  "yields nothing": () => iterable({ next: async () => ({ done: false, value: undefined }) }),
  "yields null": () => iterable({ next: async () => ({ done: false, value: null }) }),
  "yields a bare string": () => iterable({ next: async () => ({ done: false, value: "hello" }) }),
  "yields a number for a text": () => iterable({ next: async () => ({ done: false, value: { text: 7 } }) }),
  "yields an invalid usage": () => iterable({ next: async () => ({ done: false, value: { usage: "much" } }) }),
  "yields a usage below nothing": () =>
    iterable({ next: async () => ({ done: false, value: { usage: { input: -1, output: 0 } } }) }),
  "yields something of another kind": () => iterable({ next: async () => ({ done: false, value: { image: "…" } }) }),
  "throws from next, and from return too": () => iterable({ next: boom, return: boom }),
  "rejects from next, and from return too": () => iterable({ next: async () => boom(), return: async () => boom() }),
  "throws after it has written": async function* () {
    yield { text: "half" };
    boom();
  },
};

const HANGING: Record<string, Run> = {
  "never returns and ignores the signal": () => iterable({ next: never }),
  "never returns, and throws from return": () => iterable({ next: never, return: boom }),
  "never returns, and rejects from return": () => iterable({ next: never, return: async () => boom() }),
  "never returns, and answers return with nothing": () => iterable({ next: never, return: () => undefined }),
  "never returns, and not from return either": () => iterable({ next: never, return: never }),
  "is a generator that waits for ever": async function* () {
    yield { text: "half" };
    await never();
  },
};

/** The process continues and the gateway works: another turn of the same session runs and ends. */
async function expectAlive(core: TestCore): Promise<void> {
  const { createEchoBackend } = await import("#backends/echo.ts");
  await core.core.reconfigure(core.settingsWith([{ name: "main", backend: createEchoBackend() }]));
  expect((await core.startFully({ text: "alive", waitMs: 1_000 })).turn).toMatchObject({ reply: "alive" });
  await core.clock.settle();
  expect(core.runner.running()).toBe(0);
  expect(core.store.stats()).toMatchObject({ turnsQueued: 0, turnsRunning: 0 });
}

const HIDDEN = { name: "turn-failed", detail: "the agent's backend failed" };

describe("F21: a backend that fails", () => {
  for (const [name, run] of Object.entries(FAILING)) {
    it(`MUST lead to a failed turn: one that ${name}`, async () => {
      await using core = await startCore({ backend: backendOf(run) });
      const turn = await core.start();
      expect(await core.ended(turn)).toMatchObject({ status: "failed", error: HIDDEN });
      expect(await core.logged("backend.failed")).toHaveLength(1);
      await expectAlive(core);
    });
  }

  for (const [name, run] of Object.entries(HANGING)) {
    it(`MUST end at the turn's deadline: one that ${name}`, async () => {
      await using core = await startCore({ agents: [{ name: "main", deadlineMs: 1_000 }], backend: backendOf(run) });
      const turn = await core.start();
      await core.clock.advance(1_250);
      expect(await core.turns.get(turn.turnId)).toMatchObject({ status: "failed", error: { name: "turn-timeout" } });
      await expectAlive(core);
    });

    it(`MUST end when the turn is cancelled: one that ${name}`, async () => {
      await using core = await startCore({ backend: backendOf(run) });
      const turn = await core.start();
      await core.clock.settle();
      expect(await core.turns.cancel(turn.turnId)).toMatchObject({ status: "cancelled" });
      await expectAlive(core);
    });
  }

  it("MUST not block others: one that yields without ever waiting", async () => {
    const { signal, stop } = stoppable();
    // It ends some time, so that a gateway without pauses fails here and does not hang.
    let left = 300_000;
    const isOver = () => signal.aborted || left-- === 0;
    const run: Run = () => iterable({ next: async () => ({ done: isOver(), value: { text: "" } }) });
    await using core = await startCore({ backend: backendOf(run) });
    const turn = await core.start();
    await core.clock.settle();
    expect(await core.turns.get(turn.turnId)).toMatchObject({ status: "running" });
    stop();
    expect(await core.ended(turn)).toMatchObject({ status: "completed", reply: "" });
  });

  it("MUST not end another turn: one that rejects a promise without a handler", async () => {
    const run: Run = async function* () {
      void Promise.reject(new Error("forgotten"));
      yield { text: "fine" };
    };
    await using core = await startCore({ backend: backendOf(run) });
    const { heard, restore } = catchRejections();
    try {
      const turn = await core.start();
      expect(await core.ended(turn)).toMatchObject({ status: "completed", reply: "fine" });
      await core.clock.settle();
      expect(heard).toEqual([expect.objectContaining({ message: "forgotten" })]);
    } finally {
      restore();
    }
    await expectAlive(core);
  });

  it("MUST cause no unhandled rejection when it fails after its turn was cancelled", async () => {
    let fail = (_: Error) => {};
    const run: Run = () => iterable({ next: () => new Promise((_, reject) => (fail = reject)) });
    await using core = await startCore({ backend: backendOf(run) });
    const { heard, restore } = catchRejections();
    try {
      const turn = await core.start();
      await core.turns.cancel(turn.turnId);
      fail(new Error("late"));
      await core.clock.settle();
      expect(heard).toEqual([]);
    } finally {
      restore();
    }
    expect((await core.logged("unexpected.error")).length).toBe(0);
  });

  it("MUST fail the turn when its reply exceeds 4 MiB, and store at most 4 MiB of the reply", async () => {
    const run: Run = async function* () {
      for (;;) yield { text: "x".repeat(3 * 1024 * 1024) };
    };
    await using core = await startCore({ backend: backendOf(run) });
    const turn = await core.ended(await core.start());
    expect(turn).toMatchObject({ status: "failed", error: { detail: "the reply is longer than 4 MiB" } });
    expect(turn.reply).toHaveLength(3 * 1024 * 1024);
    await expectAlive(core);
  });
});

/** Replaces the runner's own listeners for a while, because the test needs their notifications. */
function catchRejections() {
  const others = process.listeners("unhandledRejection");
  const heard: unknown[] = [];
  process.removeAllListeners("unhandledRejection");
  process.on("unhandledRejection", (error) => heard.push(error));
  const restore = () => {
    process.removeAllListeners("unhandledRejection");
    for (const other of others) process.on("unhandledRejection", other);
  };
  return { heard, restore };
}
