import type { Random } from "#test/harness/random.ts";

/** The ways in which work is asked for. */
export const KINDS = ["wake", "agent", "mapped", "chat", "rpc"] as const;
export type Kind = (typeof KINDS)[number];

/** A 2xx, as the client wrote it down. */
export type Ack = {
  /** The turn that was started, or the event that was queued. */
  work: string;
  messageId?: string;
  sessionId?: string;
  /** The reply, where the client waited for it. */
  reply?: string;
};

/** Something that the client wanted, and all it heard of it. Its marker is in its text, and in no other. */
export type Order = {
  marker: string;
  kind: Kind;
  agent: string;
  /** The text that the store must keep, to the letter. */
  text: string;
  /** The session that it names; without one the gateway opens one. */
  sessionId: string | undefined;
  key: string | undefined;
  /** The client's own clock: from here on it may be stored, and with the first answer it is. */
  sentAt: number;
  ackedAt: number | undefined;
  acks: Ack[];
  /** `refused`: the gateway said no, and may not keep it. `unknown`: nobody knows whether it was stored. */
  outcome: "acknowledged" | "refused" | "unknown";
};

/** `quick` answers at once; `slow` is in the middle of its replies when it is killed. */
export const AGENTS = ["quick", "slow"] as const;
const ROOMS = 8;
const NAMED = 0.7;
const KEYED = 0.4;
const WAITS_OF_SLOW = 0.2;
const FILLER = "What changed since yesterday, and who has to know of it? ";

const MARKER = /<[a-z]\w*-\d+>/g;
export function markersIn(text: string): string[] {
  return text.match(MARKER) ?? [];
}

/** Renders the text that was sent as the mapping does. */
export function renderedOf(text: string): string {
  return `Pushed: ${text}`;
}

export function roomOf(kind: Kind, agent: string, room: number): string {
  return kind === "agent" || kind === "mapped" ? `webhook:${kind}-${agent}-${room}` : `room:${agent}:${room}`;
}

/** The sessions that a mapping names in the configuration: one of each agent. */
export function mappedSessionOf(agent: string): string {
  return roomOf("mapped", agent, 0);
}

/** Makes one order after another, the same for the same random numbers. `run` tells the markers of one run from those of another. */
export function createOrders(random: Random, run: string) {
  let made = 0;
  return (now: number, kinds: readonly Kind[] = KINDS): Order => {
    const kind = random.pick(kinds);
    const isWaiting = kind === "chat";
    const agent = isWaiting && !random.chance(WAITS_OF_SLOW) ? "quick" : random.pick(AGENTS);
    const marker = `<${run}-${++made}>`;
    const isNamed = kind === "mapped" || (kind !== "wake" && random.chance(NAMED));
    const room = kind === "mapped" ? 0 : random.below(ROOMS);
    const sent = `${marker} ${FILLER.slice(0, random.below(FILLER.length))}`.trim();
    return {
      marker,
      kind,
      agent,
      text: kind === "mapped" ? renderedOf(sent) : sent,
      sessionId: isNamed ? roomOf(kind, agent, room) : undefined,
      key: random.chance(KEYED) ? `key-${run}-${made}` : undefined,
      sentAt: now,
      ackedAt: undefined,
      acks: [],
      outcome: "unknown",
    };
  };
}
