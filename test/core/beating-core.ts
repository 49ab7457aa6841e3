import type { EventRequest } from "#core/heartbeat/system-events.ts";
import type { GatewayEntry, SystemEvent } from "#store/store.ts";
import type { ScriptedRun } from "#test/backends/scripted.ts";
import { type CoreOptions, startCore } from "./start-core.ts";

/** The default pause between two beats of an agent. */
export const EVERY = 1_800_000;
/** By then the next beat has started, with any jitter. */
export const A_BEAT = EVERY * 1.1 + 1;
export const MAIN = "agent:main:main";

/** A core with system events, and functions to wait for its beats. */
export async function startBeating(options: CoreOptions = {}) {
  const agents = (options.agents ?? [{ name: "main" }]).map((agent) => ({ deadlineMs: 1e9, ...agent }));
  const core = await startCore({ ...options, agents });
  const queueFully = (options: Partial<EventRequest> = {}) =>
    core.core.systemEvents.queue({
      agent: undefined,
      text: "something happened",
      metadata: undefined,
      mode: "next-heartbeat",
      caller: "shared",
      idempotency: undefined,
      delivery: undefined,
      hops: 0,
      ...options,
    });
  const queue = async (text: string, options: Partial<EventRequest> = {}): Promise<SystemEvent> =>
    (await queueFully({ text, ...options })).event;
  /** Waits until beats cannot continue without a further event: each of their steps waits for a turn of the loop. */
  const settle = async (): Promise<void> => {
    for (let n = 0; n < 4; n++) await core.clock.settle();
  };
  let ended = 0;
  const end = async (run: ScriptedRun): Promise<void> => {
    run.end();
    await run.left;
    await settle();
  };
  return Object.assign(core, {
    settle,
    queueFully,
    queue,
    end,
    /** Queues a number of events, one after another. */
    async queueMany(count: number, options: Partial<EventRequest> = {}): Promise<SystemEvent[]> {
      const queued: SystemEvent[] = [];
      for (let n = 1; n <= count; n++) queued.push(await queue(`event ${n}`, options));
      return queued;
    },
    /** Lets the interval of one beat pass. */
    async beat(): Promise<void> {
      await core.clock.advance(A_BEAT);
      await settle();
    },
    /** Completes every turn that has started, and every one that starts because of that. */
    async endAll(): Promise<void> {
      for (let run = core.scripted.runs[ended]; run; run = core.scripted.runs[++ended]) await end(run);
    },
    read: (event: SystemEvent) => core.core.systemEvents.get(event.eventId),
    statusesOf: (events: readonly SystemEvent[]): Promise<string[]> =>
      Promise.all(events.map(async ({ eventId }) => (await core.core.systemEvents.get(eventId)).status)),
    /** The texts of the events of each turn. */
    handed: (): string[][] => core.scripted.runs.map(({ turn }) => eventTextsOf(turn.message.text)),
    /** The gateway's stream, without queued events. */
    async told(): Promise<GatewayEntry[]> {
      return (await core.core.gatewayStream.read(0, 100_000)).filter(({ name }) => name !== "event.queued");
    },
    nextAt: (agent = "main"): number | undefined => core.store.agentCounts(agent).nextBeatAt,
  });
}

export type BeatingCore = Awaited<ReturnType<typeof startBeating>>;

/** The one-line texts in the message of a heartbeat. */
function eventTextsOf(message: string): string[] {
  return message
    .split("\n\n")
    .slice(1)
    .map((part) => part.split("\n")[1] as string);
}
