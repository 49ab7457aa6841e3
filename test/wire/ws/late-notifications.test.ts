import fc from "fast-check";
import { expect, test } from "vitest";
import type { Store, StoreWatcher, Turn } from "#store/store.ts";
import type { PendingCall } from "#wire/socket/subscription.ts";
import type { ScriptedRun } from "../../backends/scripted.ts";
import { startCore } from "../../core/start-core.ts";
import { createSink, subscriberOf } from "./sink.ts";

type Step =
  | { do: "send"; stream: boolean }
  | { do: "repeat"; index: number; stream: boolean }
  | { do: "notify"; count: number }
  | { do: "subscribe" | "unsubscribe"; what: "session" | "agent" }
  | { do: "say" | "end" | "fill" | "drain" | "settle" };

const what = fc.constantFrom("session" as const, "agent" as const);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant("send" as const), stream: fc.boolean() }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant("repeat" as const), index: fc.nat(9), stream: fc.boolean() }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant("notify" as const), count: fc.nat(6) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constantFrom("subscribe" as const, "unsubscribe" as const), what }) },
  {
    weight: 10,
    arbitrary: fc.record({
      do: fc.constantFrom("say" as const, "end" as const, "end" as const, "fill", "drain", "settle" as const),
    }),
  } as fc.WeightedArbitrary<Step>,
);

type Push = { method: string; params: { seq: number; turnId: string; offset?: number; text?: string; reply?: string } };
/** A push, and the call that it belongs to. */
type Got = Push & { call: number | undefined };

function isEnd({ method }: Push): boolean {
  return method === "turn.completed";
}

/** Plays the steps over one connection of a shared store, whose notifications are late. */
async function play(steps: readonly Step[]) {
  const late: (() => void)[] = [];
  const wrapStore = (store: Store): Partial<Store> => ({
    watch: (watcher: StoreWatcher) =>
      store.watch({ ...watcher, entries: (...news) => void late.push(() => watcher.entries?.(...news)) }),
  });
  await using core = await startCore({ wrapStore });
  const got: Got[] = [];
  const receive = (frame: Buffer, call?: number): void => {
    got.push({ ...JSON.parse(frame.subarray(frame.indexOf("{")).toString()), call });
  };
  const sink = Object.assign(createSink(), { push: (frame: Buffer) => receive(frame) });
  const subscriber = subscriberOf(core, sink, true);
  const calls: { turnId: string; stream: boolean; isRepeat: boolean; at: number }[] = [];
  const follow = (turn: Turn, replySeq: number | undefined, stream: boolean, isRepeat: boolean): void => {
    const call = calls.push({ turnId: turn.turnId, stream, isRepeat, at: got.length }) - 1;
    const pending: PendingCall = { pushAfterAnswer: (frame) => receive(frame, call) };
    subscriber.follow(pending, turn, { stream, replySeq });
  };
  const turns: Turn[] = [];
  let run: ScriptedRun | undefined;
  let ended = 0;
  let wasSubscribed = false;
  const current = async (): Promise<ScriptedRun | undefined> => {
    if (!run && ended < turns.length) run = await core.scripted.next();
    return run;
  };
  const end = async (): Promise<void> => {
    const running = await current();
    if (!running) return;
    running.end();
    run = undefined;
    const { turnId } = turns[ended++] as Turn;
    while ((await core.store.getTurn(turnId))?.status !== "completed") await core.clock.settle();
  };
  for (const one of steps) {
    if (one.do === "send") {
      const { turn } = await core.startFully({
        follow: (started, replySeq) => follow(started, replySeq, one.stream, false),
      });
      turns.push(turn);
    } else if (one.do === "repeat") {
      const known = turns[one.index % Math.max(turns.length, 1)];
      if (known) follow((await core.store.getTurn(known.turnId)) as Turn, undefined, one.stream, true);
    } else if (one.do === "notify") for (const notify of late.splice(0, one.count)) notify();
    else if (one.do === "subscribe") {
      if (turns.length === 0) continue;
      wasSubscribed = true;
      await subscriber.subscribe(one.what === "agent" ? { agents: ["main"] } : { sessions: { "chat:a": null } });
    } else if (one.do === "unsubscribe")
      await subscriber.unsubscribe(one.what === "agent" ? { agents: ["main"] } : { sessions: ["chat:a"] });
    else if (one.do === "say") (await current())?.say(`word ${got.length} `);
    else if (one.do === "end") await end();
    else if (one.do === "settle") await core.clock.settle();
    else {
      sink.hasRoom = one.do === "drain";
      subscriber.pump.startSoon();
    }
  }
  while (ended < turns.length) await end();
  sink.hasRoom = true;
  subscriber.pump.startSoon();
  for (const notify of late.splice(0)) notify();
  for (let n = 0; n < 20; n++) await core.clock.settle();
  await subscriber.unsubscribe({ agents: ["main"], sessions: ["chat:a"] });
  const isFollowed = core.core.streams.wants({ sessionId: "chat:a", agent: "main" });
  return { got, calls, isFollowed, wasSubscribed };
}

test("each sender gets the end of its turn once, and the pieces in order, if notifications are late", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 3, maxLength: 30 }), async (steps) => {
      const { got, calls, isFollowed, wasSubscribed } = await play(steps);
      expect(isFollowed).toBe(false);
      for (const [call, { turnId, stream, isRepeat, at }] of calls.entries()) {
        const ends = got.filter((push) => isEnd(push) && push.params.turnId === turnId);
        expect(ends.filter((push) => push.call === call).length, `call ${call}`).toBeLessThan(2);
        expect(got.slice(at).filter((push) => ends.includes(push)).length, `call ${call}`).toBeGreaterThan(0);
        const senders = calls.filter((other) => other.turnId === turnId).length;
        if (!stream || isRepeat || senders > 1 || wasSubscribed) continue;
        let text = "";
        for (const { params } of got.filter(
          ({ method, params }) => method === "message.delta" && params.turnId === turnId,
        )) {
          expect(params.offset).toBe(text.length);
          text += params.text;
        }
        expect(text).toBe(ends[0]?.params.reply);
        const last = got.findLastIndex(({ method, params }) => method === "message.delta" && params.turnId === turnId);
        expect(last).toBeLessThan(got.indexOf(ends[0] as Got));
      }
      // A subscription that starts after another one has ended may get its entries again.
      if (steps.some((one) => one.do === "unsubscribe")) return;
      const seqs = got.filter(({ method, call }) => method !== "message.delta" && call === undefined);
      expect(new Set(seqs.map(({ params }) => params.seq)).size).toBe(seqs.length);
    }),
    { numRuns: 150 },
  );
});
