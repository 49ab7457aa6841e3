import type { Backend, BackendMessage, TellUsed } from "#backends/backend.ts";
import { createPuppet, type Played } from "#test/harness/backends.ts";
import { type CoreOptions, startCore } from "./start-core.ts";

/** One call of `summarise`, which a test answers. */
type SummaryCall = {
  messages: readonly string[];
  signal: AbortSignal;
  answer(text: unknown): void;
  fail(error: unknown): void;
  used: TellUsed;
};

export function wordsOf({ role, text }: Pick<BackendMessage, "role" | "text">): string {
  return `${role}: ${text}`;
}

/** A core whose turns and summaries a test controls. */
export async function startPlayed(options: CoreOptions & { backendWith?: Partial<Backend> } = {}) {
  const puppet = createPuppet();
  const asked: SummaryCall[] = [];
  const waiting: ((asked: SummaryCall) => void)[] = [];
  const summarise: Backend["summarise"] = (messages, signal, used = () => {}) =>
    new Promise<string>((resolve, reject) => {
      const answer = resolve as (text: unknown) => void;
      const one = { messages: messages.map(wordsOf), signal, answer, fail: reject, used };
      asked.push(one);
      waiting.shift()?.(one);
    });
  const backend = { ...puppet.backend, summarise, ...options.backendWith };
  const core = await startCore({ ...options, backend });
  let taken = 0;
  const say = (run: Played, text: string) => {
    run.say(text);
    run.end();
  };
  /** Sends a message in a session, and lets the backend answer. */
  const talk = async (text: string, session = "chat:a") => {
    const turn = await core.start({ text, session });
    say(await puppet.next(), `re ${text}`);
    await core.ended(turn);
    await core.clock.settle();
  };
  const read = async (query: { includeCompacted?: boolean } = {}) =>
    (await core.store.readMessages("chat:a", { limit: 100, ...query })).map(({ text }) => text).reverse();
  return Object.assign(core, {
    say,
    talk,
    read,
    next: puppet.next,
    asked,
    nextAsked: () =>
      asked.length > taken
        ? Promise.resolve(asked[taken++] as SummaryCall)
        : new Promise<SummaryCall>((resolve) => {
            taken++;
            waiting.push(resolve);
          }),
    compact: (keep = 0, sessionId = "chat:a") => {
      const done = core.core.compactions.compact({ sessionId, keep }, "ops");
      done.catch(() => {});
      return done;
    },
  });
}

export function nameOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    () => "no error",
    (error: Error) => error.name,
  );
}
