import { newId } from "#kit/ids.ts";
import type {
  Claim,
  ClaimedTurn,
  CompactionResult,
  Delivery,
  Entry,
  GatewayEntry,
  Lane,
  MoreUsage,
  RecorderLimits,
  Store,
  StoreLimits,
  StoreWatcher,
  TurnEnd,
  TurnOrder,
  Usage,
  UsageRow,
  WorkKind,
} from "#store/store.ts";
import { createManualClock, type ManualClock } from "#test/harness/clock.ts";

/** An engine for the suite. */
export type Engine = {
  name: string;
  /** An empty store. */
  open(clock: ManualClock): Promise<Store>;
  /** A durable engine closes `store` and opens the same data again. */
  reopen?: (store: Store, clock: ManualClock) => Promise<Store>;
  /** Its numbers may be a moment old, because others count, too. */
  countsLater?: true;
};

type Told =
  | { kind: "entries"; sessionId: string; entries: readonly Entry[] }
  | { kind: "deleted"; sessionId: string; seq: number; at: number }
  | { kind: "gateway"; entries: readonly GatewayEntry[] }
  | { kind: "compacted"; turnId: string; result: CompactionResult }
  | { kind: WorkKind; dueInMs?: number }
  | { kind: "cancel"; turnId: string }
  | { kind: "recorded" | "outcome"; deliveryId: string }
  | { kind: "deliveriesLost" };

export type WorldOptions = Partial<
  Omit<TurnOrder, "session" | "limits" | "recorder" | "idempotency"> & {
    session: string;
    agent: string;
    key: string;
    hash: string;
    limits: Partial<StoreLimits>;
    recorder: RecorderLimits;
  }
>;

type SweepOrder = Parameters<Store["sweep"]>[0];

export function times<T>(count: number, make: (n: number) => T): T[] {
  return Array.from({ length: count }, (_, n) => make(n));
}

export const LEASE_MS = 30_000;
export const DAY = 86_400_000;
export const NO_USAGE: Usage = { input: 0, output: 0 };
export const LOST = { name: "turn-failed", detail: "lost" } as const;
export const RECORDER: RecorderLimits = { entries: 1_000, bytes: 1e9, refused: 1_000 };
const AMPLE: StoreLimits = { turnsPerSession: 1e6, turns: 1e6, messagesPerSession: 1e6, storeBytes: 1e12, share: 1 };

/** A turn's order, in which a test sets only the relevant fields. */
export function turnOrder(now: number, options: WorldOptions = {}): TurnOrder {
  const { session = "chat:a", agent = "main", key, hash = "hash", limits, ...rest } = options;
  return {
    now,
    turnId: newId("turn", now),
    messageId: newId("msg", now),
    session: { sessionId: session, agent, channel: "rest", userId: "ada" },
    surface: "rest",
    caller: "ci",
    text: "hello",
    outside: false,
    model: undefined,
    countedModel: rest.model ?? "echo",
    skillIds: [],
    waited: false,
    idempotency: key === undefined ? undefined : { key, hash, expiresAt: now + DAY },
    delivery: undefined,
    recorder: RECORDER,
    context: undefined,
    announce: undefined,
    claim: undefined,
    ...rest,
    limits: { ...AMPLE, ...limits },
  };
}

/** Runs a turn to its end, with the records of its order. */
export async function endTurn(
  store: Store,
  now: number,
  options: WorldOptions = {},
  how: Partial<TurnEnd> = {},
): Promise<void> {
  const claim = { now, node: "node_a", leaseMs: DAY, replyMessageId: newId("msg", now) };
  const { claimed } = await store.startTurn(turnOrder(now, { claim, ...options }));
  if (!claimed) throw new Error("the turn was not claimed at once");
  await store.endTurn(claimed.claim, {
    now,
    status: "completed",
    reply: "hi",
    error: undefined,
    usage: undefined,
    ...how,
  });
}

/** A sweep that erases only what it is told to erase. */
export function sweepOrder(now: number, past: Partial<SweepOrder> = {}): SweepOrder {
  return {
    now,
    maxAttempts: 3,
    lost: LOST,
    sessionsBefore: 0,
    webhookSessionsBefore: 0,
    usageBefore: 0,
    gatewayBefore: 0,
    eventsBefore: 0,
    keysBefore: 0,
    ...past,
  };
}

/** A store with a clock that a test moves, all notifications of a watcher, and shortcuts for frequent steps of the suite. */
export async function openWorld(engine: Engine) {
  const clock = createManualClock();
  const world = { clock, store: await engine.open(clock) };
  let made = 0;
  const newId = (prefix: string): string => `${prefix}_${String(++made).padStart(6, "0")}`;

  const told: Told[] = [];
  const waiting = new Set<() => void>();
  const hear = (what: Told) => {
    told.push(what);
    for (const look of waiting) look();
  };
  const watch = (store: Store) =>
    store.watch({
      entries: ({ sessionId }, entries) => hear({ kind: "entries", sessionId, entries }),
      sessionDeleted: ({ sessionId }, end) => hear({ kind: "deleted", sessionId, ...end }),
      gatewayEntries: (entries) => hear({ kind: "gateway", entries }),
      compacted: (turnId, result) => hear({ kind: "compacted", turnId, result }),
      work: (kind, dueInMs) => hear(dueInMs === undefined ? { kind } : { kind, dueInMs }),
      cancel: (turnId) => hear({ kind: "cancel", turnId }),
      deliveriesLost: () => hear({ kind: "deliveriesLost" }),
      delivery: (deliveryId, kind) => hear({ kind, deliveryId }),
    });
  watch(world.store);

  /** Resolves when the watcher has a notification for which `is` is true. */
  const hears = (is: (what: Told) => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = () => {
        if (!told.some(is)) return;
        waiting.delete(look);
        resolve();
      };
      waiting.add(look);
      look();
    });

  const order = (options: WorldOptions = {}): TurnOrder =>
    turnOrder(options.now ?? clock.now(), { turnId: newId("turn"), messageId: newId("msg"), ...options });

  const start = async (options: WorldOptions = {}) => (await world.store.startTurn(order(options))).turn;

  const claim = async (
    options: { free?: number; freeOf?: (agent: string, lane: Lane) => number; node?: string } = {},
  ) => {
    const { free = 1_000, freeOf = () => 1_000, node = "node_a" } = options;
    const request = { now: clock.now(), node, leaseMs: LEASE_MS, free, freeOf, newMessageId: () => newId("msg") };
    return await world.store.claimTurns(request);
  };

  /** Claims the next turn. */
  const claimNext = async (options: Parameters<typeof claim>[0] = {}): Promise<ClaimedTurn> => {
    const { turns } = await claim({ ...options, free: 1 });
    if (!turns[0]) throw new Error("no turn can be claimed");
    return turns[0];
  };

  const end = ({ claim }: { claim: Claim }, how: Partial<TurnEnd> = {}): Promise<boolean> =>
    world.store.endTurn(claim, {
      now: clock.now(),
      status: "completed",
      reply: how.status && how.status !== "completed" ? "" : "hi",
      error: how.status === "failed" ? { name: "turn-failed", detail: "broken" } : undefined,
      usage: undefined,
      ...how,
    });

  const release = ({ claim }: { claim: Claim }, delayMs = 0, usage?: UsageRow): Promise<boolean> =>
    world.store.releaseTurn(claim, { now: clock.now(), delayMs, usage });

  const sweep = async (options: Partial<Parameters<Store["sweep"]>[0]> = {}): Promise<number> => {
    const now = clock.now();
    let slices = 1;
    while (await world.store.sweep(sweepOrder(now, { keysBefore: now, ...options }))) slices++;
    return slices;
  };

  const entries = (sessionId = "chat:a") => world.store.readEntries(sessionId, { after: 0, limit: 1_000 });
  const names = async (sessionId?: string) => (await entries(sessionId)).map(({ name }) => name);

  /** All readable data of some sessions and turns, to check that nothing has changed. */
  const everything = async (sessionIds: readonly string[], turnIds: readonly string[] = []) => ({
    stats: world.store.stats(),
    sessions: await Promise.all(sessionIds.map((id) => world.store.getSession(id))),
    entries: await Promise.all(sessionIds.map((id) => entries(id))),
    turns: await Promise.all(turnIds.map((id) => world.store.getTurn(id))),
  });

  return Object.assign(world, {
    told,
    hears,
    order,
    start,
    claim,
    claimNext,
    end,
    release,
    sweep,
    entries,
    names,
    everything,
    newId,
    /** The same, after the engine was closed and opened again. */
    async reopen(): Promise<void> {
      if (!engine.reopen) throw new Error(`${engine.name} keeps nothing`);
      world.store = await engine.reopen(world.store, clock);
      watch(world.store);
    },
    [Symbol.asyncDispose]: () => world.store[Symbol.asyncDispose](),
  });
}

export type World = Awaited<ReturnType<typeof openWorld>>;

export function deliveryOf(deliveryId: string, body = "{}"): Delivery {
  return {
    deliveryId,
    at: 1,
    surface: "rest",
    operation: "chat.send",
    method: "POST",
    path: "/api/v1/chat/send",
    address: "127.0.0.1",
    requestId: "req_1",
    caller: "ci",
    headers: "content-type: application/json",
    body: Buffer.from(body).toString("latin1"),
    showsWords: true,
    bytes: body.length,
    answer: "accepted",
    status: undefined,
    mapping: undefined,
    replayOf: undefined,
    senderId: undefined,
    steps: [],
  };
}

export function used(
  input: number,
  output: number,
  model = "echo",
  latencyMs = 10,
  more: MoreUsage | undefined = undefined,
): UsageRow {
  return { model, usage: more ? { input, output, more } : { input, output }, latencyMs };
}

/** The same with cached and reasoning tokens, and a cost. */
export function usedMore(cached: number, reasoning: number, cost: number, model = "echo"): UsageRow {
  return used(cached + 1, reasoning + 1, model, 10, { cached, reasoning, cost });
}

/** The name of the GatewayError of a refused `call`. */
export async function refusal(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    const { GatewayError } = await import("#kit/errors.ts");
    if (error instanceof GatewayError) return error.name;
    throw error;
  }
  return "not refused";
}

/** A watcher that does nothing. */
export const silent: StoreWatcher = {
  entries: () => {},
  sessionDeleted: () => {},
  gatewayEntries: () => {},
  work: () => {},
  cancel: () => {},
  compacted: () => {},
};
