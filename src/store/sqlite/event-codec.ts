import type { EventStatus, SystemEvent } from "#store/store.ts";
import { quoteAll, quoteIf } from "./json.ts";

/** As they are kept. One that waits may be a turn's: that is told by the turn. One that is gone has left its place empty. */
export const WAITS = 0;
export const HANDLED = 1;
export const DEAD = 2;
export const GONE = 3;
const STATUSES: readonly EventStatus[] = ["queued", "handled", "dead"];

export const statusOf = (state: number): EventStatus => STATUSES[state] as EventStatus;

/** What of an event never changes. */
export type EventBody = [text: string, metadata: string | null, caller: string, createdAt: number];

/** How an event is. Those that changed together share one: it is never changed itself. */
export type EventState = {
  readonly state: number;
  readonly attempts: number;
  readonly endedAt: number | null;
  readonly turnId: string | null;
  readonly reason: string | null;
};
export const NEW: EventState = { state: WAITS, attempts: 0, endedAt: null, turnId: null, reason: null };
export const LEFT: EventState = { ...NEW, state: GONE };

/** Events that were queued together are kept together; their ordinals follow one another. One agent stands for many of the same. */
export type EventHead = [ids: string[], agents: string | string[], deliveryIds: (string | null)[]];
type KeptStates = (
  | [count: number]
  | [
      count: number,
      state: number,
      attempts: number,
      endedAt: number | null,
      turnId: string | null,
      reason: string | null,
    ]
)[];

export const encodeHead = (
  ids: readonly string[],
  agents: readonly string[],
  deliveryIds: readonly (string | null)[],
): string => {
  const isOne = agents.every((agent) => agent === agents[0]);
  return `[${quoteAll(ids)},${isOne ? quoteIf(agents[0]) : quoteAll(agents)},${quoteAll(deliveryIds)}]`;
};

export const agentsOf = ([ids, agents]: EventHead): string[] =>
  typeof agents === "string" ? ids.map(() => agents) : agents;

/** Runs of events that are alike. */
export const encodeStates = (states: readonly EventState[]): string => {
  const runs: KeptStates = [];
  for (let from = 0; from < states.length; ) {
    const one = states[from] as EventState;
    let to = from + 1;
    while (states[to] === one) to++;
    if (one === NEW) runs.push([to - from]);
    else runs.push([to - from, one.state, one.attempts, one.endedAt, one.turnId, one.reason]);
    from = to;
  }
  return JSON.stringify(runs);
};

export const decodeStates = (text: string): EventState[] => {
  const states: EventState[] = [];
  for (const [count, state, attempts = 0, endedAt = null, turnId = null, reason = null] of JSON.parse(
    text,
  ) as KeptStates) {
    const one = state === undefined ? NEW : { state, attempts, endedAt, turnId, reason };
    for (let n = 0; n < count; n++) states.push(one);
  }
  return states;
};

/** An `EventBody` in JSON. */
export const encodeBody = (text: string, metadata: string | undefined, caller: string, createdAt: number): string =>
  `[${JSON.stringify(text)},${quoteIf(metadata)},${JSON.stringify(caller)},${createdAt}]`;

/** An event on its way to the main side. */
export type EventRow = readonly [
  ordinal: number,
  eventId: string,
  agent: string,
  deliveryId: string | null,
  state: EventState,
  body: EventBody,
];

export const readEvent = ([ordinal, eventId, agent, deliveryId, state, body]: EventRow): SystemEvent => {
  const [text, metadata, caller, createdAt] = body;
  return {
    eventId,
    agent,
    text,
    metadata: metadata ?? undefined,
    caller,
    status: statusOf(state.state),
    attempts: state.attempts,
    createdAt,
    endedAt: state.endedAt ?? undefined,
    turnId: state.turnId ?? undefined,
    reason: state.reason ?? undefined,
    deliveryId: deliveryId ?? undefined,
    ordinal,
  };
};

/** Events that wait, by their places among those that are kept together; as texts, as objects between two threads cost several times as much. */
export type WaitingBatch = readonly [first: number, head: string, body: string, states: string, at: readonly number[]];

export const readWaiting = ([first, head, body, states, at]: WaitingBatch): SystemEvent[] => {
  const all = JSON.parse(head) as EventHead;
  const [ids, , deliveryIds] = all;
  const agents = agentsOf(all);
  const bodies = JSON.parse(body) as EventBody[];
  const how = decodeStates(states);
  return at.map((n) => {
    const row = [ids[n], agents[n], deliveryIds[n], how[n], bodies[n]] as const;
    return readEvent([first + n, ...row] as EventRow);
  });
};
