import type { Random } from "#test/harness/random.ts";

/** The ways to request work. */
export const KINDS = ["wake", "agent", "mapped", "burst", "chat", "rpc"] as const;
export type Kind = (typeof KINDS)[number];

/** A 2xx, as recorded by the client. */
export type Ack = {
  /** The started turn, or the queued event. */
  work: string;
  messageId?: string;
  sessionId?: string;
  /** The reply, if the client waited for it. */
  reply?: string;
};

/** A request of a client, with all of its answers. Its marker is in its text, and in no other text. */
export type Order = {
  marker: string;
  kind: Kind;
  agent: string;
  /** The exact text that the store must have. */
  text: string;
  /** The session that it names; without one the gateway creates one. */
  sessionId: string | undefined;
  key: string | undefined;
  /** The client's own clock: the work may be stored from the first time, and is stored at the time of the first answer. */
  sentAt: number;
  ackedAt: number | undefined;
  acks: Ack[];
  /** `refused`: the gateway refused it, and may not store it. `unknown`: it may be stored or not. */
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

/** Renders the sent text like the mappings. */
export function renderedOf(text: string): string {
  return `Pushed: ${text}`;
}

/** The kinds whose text is rendered by a mapping. */
export function isMapped(kind: Kind): boolean {
  return kind === "mapped" || kind === "burst";
}

export function roomOf(kind: Kind, agent: string, room: number): string {
  return kind === "agent" || isMapped(kind) ? `webhook:${kind}-${agent}-${room}` : `room:${agent}:${room}`;
}

/** The sessions of the mapping in the configuration: one for each agent. */
export function mappedSessionOf(agent: string): string {
  return roomOf("mapped", agent, 0);
}

/** Creates one request after another, determined by the random numbers. `run` distinguishes the markers of different runs. */
export function createOrders(random: Random, run: string) {
  let made = 0;
  return (now: number, kinds: readonly Kind[] = KINDS): Order => {
    const kind = random.pick(kinds);
    const isWaiting = kind === "chat";
    const agent = isWaiting && !random.chance(WAITS_OF_SLOW) ? "quick" : random.pick(AGENTS);
    const marker = `<${run}-${++made}>`;
    const isNamed = isMapped(kind) || (kind !== "wake" && random.chance(NAMED));
    const room = kind === "mapped" ? 0 : random.below(ROOMS);
    const sent = `${marker} ${FILLER.slice(0, random.below(FILLER.length))}`.trim();
    return {
      marker,
      kind,
      agent,
      text: isMapped(kind) ? renderedOf(sent) : sent,
      sessionId: isNamed ? roomOf(kind, agent, room) : undefined,
      key: random.chance(KEYED) ? `key-${run}-${made}` : undefined,
      sentAt: now,
      ackedAt: undefined,
      acks: [],
      outcome: "unknown",
    };
  };
}
