import { describe, expect, it, onTestFinished } from "vitest";
import { failureOf, isAlive, pidsIn, replyOf, shell, untilGone } from "./stand-ins/programs.ts";
import { collect, textOf, turnOf } from "./suite.ts";

/** Runs a program until it has printed the ids of its processes. Returns a function that stops it. */
async function runUntilTold(script: string, count: number) {
  const controller = new AbortController();
  const backend = shell(script);
  const chunks = backend.run(turnOf(), controller.signal)[Symbol.asyncIterator]();
  let told = "";
  while (pidsIn(told).length < count || !told.endsWith(".")) {
    const { done, value } = await chunks.next();
    if (done) throw new Error(`it ended: ${told}`);
    if ("text" in value) told += value.text;
  }
  const pids = pidsIn(told);
  onTestFinished(() => {
    for (const pid of pids.filter(isAlive)) process.kill(pid, "SIGKILL");
  });
  expect(pids.every(isAlive)).toBe(true);
  return { backend, chunks, pids, stop: () => controller.abort(new Error("stop")) };
}

const FORKS: [string, string, number][] = [
  ["forks", 'sleep 60 & echo "$$ $!."; wait', 2],
  [
    "ignores SIGTERM, with a child that does too",
    "trap '' TERM; sleep 60 & echo \"$$ $!.\"; while :; do sleep 1; done",
    2,
  ],
  ["forks twice, so that the last process has no parent", '(sleep 60 & echo "$!") ; echo "$$."; exec sleep 60', 2],
  ["has a pipe of programs", 'echo "$$."; yes | sort | sleep 60', 1],
];

describe("a command leaves no child process", () => {
  it.each(FORKS)("if its turn is stopped: one that %s", async (_, script, count) => {
    const { chunks, pids, stop } = await runUntilTold(script, count);
    stop();
    await Promise.allSettled([chunks.next()]);
    await untilGone(pids);
  });

  it.each(FORKS)("if its reader leaves: one that %s", async (_, script, count) => {
    const { chunks, pids } = await runUntilTold(script, count);
    await chunks.return?.();
    await untilGone(pids);
  });

  it("if it ends while its child holds its output open", async () => {
    const told = await replyOf(shell("sleep 60 & printf '%s' $!"));
    await untilGone(pidsIn(told));
  });

  it("and answers if a process that left its group holds its output open", async () => {
    const told = await replyOf(shell("setsid sleep 2 & printf %s $$"));
    expect(pidsIn(told)).toHaveLength(1);
  });

  it("if it fails, with its own error or ours", async () => {
    for (const script of ["sleep 60 & echo $! >&2; exit 3", "sleep 60 & echo $! >&2; printf '\\377'; sleep 60"]) {
      const said: { line: string }[] = [];
      await failureOf(replyOf(shell(script, { said })));
      await expect.poll(() => said).toHaveLength(1);
      await untilGone(said.flatMap(({ line }) => pidsIn(line)));
    }
  });

  it("and can clean up before it ends", async () => {
    const said: { line: string }[] = [];
    const controller = new AbortController();
    const backend = shell("trap 'echo tidied >&2; exit' TERM; echo begun; while :; do sleep 0.02; done", { said });
    const chunks = backend.run(turnOf(), controller.signal)[Symbol.asyncIterator]();
    await chunks.next();
    controller.abort(new Error("stop"));
    await Promise.allSettled([chunks.next()]);
    await backend.close?.();
    expect(said.map(({ line }) => line)).toContain("tidied");
  });

  it("if it is closed, which waits for running turns", async () => {
    const backend = shell("echo $$; sleep 0.2; echo done");
    const chunks = backend.run(turnOf(), new AbortController().signal)[Symbol.asyncIterator]();
    const told = [await chunks.next()];
    let isOver = false;
    const closed = backend.close?.().then(() => expect(isOver).toBe(true));
    for (let next = await chunks.next(); !next.done; next = await chunks.next()) told.push(next);
    isOver = true;
    await closed;
    expect(textOf(told.map(({ value }) => value))).toMatch(/^\d+\ndone$/);
  });

  it("while a hundred run at once", async () => {
    const backend = shell("echo $$; exec sleep 60");
    const controller = new AbortController();
    const told: string[] = [];
    const running = Array.from({ length: 100 }, async () => {
      for await (const chunk of backend.run(turnOf(), AbortSignal.any([controller.signal]))) {
        if ("text" in chunk) told.push(chunk.text);
        if (told.length === 100) controller.abort(new Error("stop"));
      }
    });
    await Promise.allSettled(running);
    expect(told).toHaveLength(100);
    await untilGone(told.flatMap(pidsIn));
  });
});

describe("several turns of a command", () => {
  it("run one after another, each in its own process", async () => {
    const backend = shell("echo $$");
    const seen = new Set<string>();
    for (let n = 0; n < 20; n++) seen.add(textOf(await collect(backend.run(turnOf(), new AbortController().signal))));
    expect(seen.size).toBe(20);
  });
});
