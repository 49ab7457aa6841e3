import { describe, expect, it } from "vitest";
import type { Backend, BackendMessage, BackendTurn, Chunk, Used } from "#backends/backend.ts";
import { BackendError } from "#kit/errors.ts";
import { startGateway } from "#test/harness/gateway.ts";

/** A backend for the suite. Each answers any message. */
type BackendUnderTest = {
  name: string;
  open(): Promise<Backend>;
  /** A backend that runs for at least a second, to be stopped meanwhile. */
  openSlow(): Promise<Backend>;
  /** A backend that takes a moment for its complete reply, in pieces if it has any. */
  openPaced(): Promise<Backend>;
  /** A backend that cannot answer. */
  openFailing(): Promise<Backend>;
  /** The same messages give the same summary. */
  deterministic: boolean;
};

export function turnOf(more: Partial<BackendTurn> = {}): BackendTurn {
  return {
    turnId: "turn_1",
    sessionId: "chat:a",
    agent: "main",
    attempt: 1,
    model: undefined,
    instructions: undefined,
    skills: [],
    message: { text: "Good morning, how are you?", outside: false, context: undefined },
    hops: 0,
    history: async () => [],
    tools: async () => [],
    offered: () => [],
    watch: { pause: (work) => work, whenLate: () => {} },
    mayRetry: () => true,
    ...more,
  };
}

/** A turn with every field, and the document that programs and services receive for it. */
export const RICH_TURN = turnOf({
  turnId: "turn_7",
  attempt: 2,
  model: "fast",
  instructions: "be kind",
  skills: [{ skillId: "sums", body: "How to add." }],
  message: { text: "two\nand two? 🙂", outside: true, context: '{"from":"a form"}' },
  history: async () => [{ role: "user", text: "hello", outside: false }],
});
export const RICH_DOCUMENT = {
  kind: "turn",
  turnId: "turn_7",
  sessionId: "chat:a",
  agent: "main",
  attempt: 2,
  model: "fast",
  instructions: "be kind",
  skills: [{ skillId: "sums", body: "How to add." }],
  message: { text: "two\nand two? 🙂", outside: true, context: { from: "a form" } },
  history: [{ role: "user", text: "hello", outside: false }],
  historyOmitted: 0,
  hops: 1,
};

export async function collect(chunks: AsyncIterable<Chunk>): Promise<Chunk[]> {
  const all: Chunk[] = [];
  for await (const chunk of chunks) all.push(chunk);
  return all;
}

export function textOf(chunks: readonly Chunk[]): string {
  return chunks.map((chunk) => ("text" in chunk ? chunk.text : "")).join("");
}

function usagesOf(chunks: readonly Chunk[]): Used[] {
  return chunks.flatMap((chunk) => ("usage" in chunk && chunk.usage ? [chunk.usage] : []));
}
function messages(count: number): BackendMessage[] {
  return Array.from({ length: count }, (_, n) => {
    return { role: n % 2 ? "assistant" : "user", text: `message ${n} 🙂`.repeat(20), outside: false };
  });
}

/** The requirements of backend.ts for every backend. */
export function backendSuite({ name, open, openSlow, openPaced, openFailing, deterministic }: BackendUnderTest): void {
  describe(`the ${name} backend`, () => {
    it("names its type, and the models that it accepts", async () => {
      const backend = await open();
      expect(backend.kind).toMatch(/^[a-z][a-z0-9-]*$/);
      if (backend.models) expect(backend.models.every((model) => model !== "")).toBe(true);
    });

    it("answers with pieces of text, and reports its usage at the end", async () => {
      const chunks = await collect((await open()).run(turnOf(), new AbortController().signal));
      expect(textOf(chunks)).not.toBe("");
      expect(chunks.at(-1)).toHaveProperty("usage");
      for (const { input, output } of usagesOf(chunks)) {
        expect(Number.isSafeInteger(input) && input >= 0).toBe(true);
        expect(Number.isSafeInteger(output) && output >= 0).toBe(true);
      }
    });

    it("splits no character", async () => {
      for (const text of ["🙂".repeat(50), "a🙂b", "🙂"]) {
        const turn = turnOf({ message: { text, outside: false, context: undefined } });
        for (const chunk of await collect((await open()).run(turn, new AbortController().signal))) {
          if ("text" in chunk) expect(chunk.text).toBe(Buffer.from(chunk.text).toString());
        }
      }
    });

    it("runs several turns at once, each with its own reply", async () => {
      const backend = await open();
      const run = async (text: string) =>
        textOf(
          await collect(
            backend.run(
              turnOf({ message: { text, outside: false, context: undefined } }),
              new AbortController().signal,
            ),
          ),
        );
      const alone = await run("one");
      const [one, two] = await Promise.all([run("one"), run("two")]);
      if (deterministic) expect(one).toBe(alone);
      expect([one, two]).not.toContain("");
    });

    it("stops at its signal, in any state", async () => {
      const backend = await openSlow();
      const stop = async (pieces: number): Promise<void> => {
        const controller = new AbortController();
        const chunks = backend.run(turnOf(), controller.signal)[Symbol.asyncIterator]();
        for (let n = 0; n < pieces; n++) await chunks.next();
        const pending = chunks.next();
        controller.abort(new Error("stop"));
        // It may end, throw, or yield values that are then ignored, but it must not continue.
        const rest = await Promise.allSettled([pending, chunks.next(), chunks.next()]);
        const last = rest.at(-1);
        expect(last?.status === "rejected" || last?.value.done).toBe(true);
      };
      for (const pieces of [0, 1]) await stop(pieces);
    });

    it("F09: continues if the reader of its reply disconnects, and a reader with the turn's id resumes there", async () => {
      const backend = await openPaced();
      await using gateway = await startGateway({ makeBackend: () => backend });
      let turn_id = "";
      let last = "";
      let read = "";
      /** Reads up to the first event of this name, and disconnects. */
      const readTo = async (name: string): Promise<void> => {
        const leaving = new AbortController();
        const stream = turn_id
          ? await gateway.rest.stream("turns.events", {
              path: { turn_id },
              headers: { "last-event-id": last },
              signal: leaving.signal,
            })
          : await gateway.rest.stream("chat.send", { body: { message: "Good morning!" }, signal: leaving.signal });
        for await (const { event, id, data } of stream.events) {
          const told = data as { turn_id: string; text: string };
          [turn_id, last] = [told.turn_id, id];
          if (event === "message.delta") read += told.text;
          // A reader that joins after the last piece gets the rest here.
          if (event === "message.completed") {
            expect(told.text.slice(0, read.length)).toBe(read);
            read = told.text;
          }
          if (event === name || event === "turn.completed") break;
        }
        leaving.abort();
      };
      for (const name of ["turn.started", "message.delta", "turn.completed"]) await readTo(name);
      const { json } = await gateway.rest.call("turns.get", { path: { turn_id } });
      expect(json).toMatchObject({ status: "completed", attempt: 1, reply: read });
      expect(read).not.toBe("");
    });

    it("does nothing if its signal was aborted before", async () => {
      const backend = await openSlow();
      const run = collect(backend.run(turnOf(), AbortSignal.abort(new Error("stop"))));
      const [outcome] = await Promise.allSettled([run]);
      if (outcome.status === "fulfilled") expect(textOf(outcome.value)).toBe("");
    });

    it("leaves no listener on a signal after its end", async () => {
      const signal = new AbortController().signal;
      let listeners = 0;
      const add = signal.addEventListener.bind(signal);
      const remove = signal.removeEventListener.bind(signal);
      signal.addEventListener = (...args: Parameters<typeof add>) => {
        listeners++;
        add(...args);
      };
      signal.removeEventListener = (...args: Parameters<typeof remove>) => {
        listeners--;
        remove(...args);
      };
      await collect((await open()).run(turnOf(), signal));
      expect(listeners).toBe(0);
    });

    it("fails with a BackendError with a readable reason", async () => {
      const run = collect((await openFailing()).run(turnOf(), new AbortController().signal));
      const error = await run.then(
        () => undefined,
        (thrown: unknown) => thrown,
      );
      expect(error).toBeInstanceOf(BackendError);
      const { message, retryable, retryAfterMs } = error as BackendError;
      expect(message).not.toBe("");
      expect(message).not.toMatch(/\n\s+at |\/node_modules\//);
      expect(typeof retryable).toBe("boolean");
      if (retryAfterMs !== undefined) expect(retryAfterMs).toBeGreaterThanOrEqual(0);
    });

    it("summarises a conversation in fewer words", async () => {
      const backend = await open();
      const long = messages(20);
      const summary = await backend.summarise(long, new AbortController().signal);
      expect(summary).not.toBe("");
      expect(summary.length).toBeLessThan(long.map(({ text }) => text).join("\n").length);
      expect(summary).toBe(Buffer.from(summary).toString());
      if (deterministic) expect(await backend.summarise(long, new AbortController().signal)).toBe(summary);
    });

    it("summarises one message, or none", async () => {
      const backend = await open();
      for (const count of [0, 1]) {
        expect(typeof (await backend.summarise(messages(count), new AbortController().signal))).toBe("string");
      }
    });
  });
}
