import { deliveryChange } from "#store/rules/records.ts";
import type { SessionRef } from "#store/store.ts";
import type { CommittedChanges } from "./records/records.ts";
import { keepText, readText } from "./texts.ts";

type Ref = [ordinal: number, sessionId: string, agent: string, contextBytes: number];
/**
 * The content of a notification, in short: entries, the end of a session, a turn to be cancelled, a compaction that may begin, a
 * delivery that was recorded, another outcome of one, work.
 */
export type Change =
  | ["e", ...Ref, from: number, through: number]
  | ["d", ...Ref, seq: number, at: number]
  | ["c", turnId: string]
  | ["p", compactionId: string]
  | ["r" | "o", deliveryId: string]
  | ["w"];
export type Notice =
  | [name: "beat" | "announcement" | "keys" | "paused", of: readonly []]
  | [name: "gateway", last: number]
  | [name: "textsAsked" | "textsPut", of: readonly string[]];
export type Heard = { changes: readonly Change[]; notices: readonly Notice[] };

/** A notification takes 8 000 bytes. */
const MOST_BYTES = 7_000;

/** The news of a transaction for others. */
export function toldOf({ news, areAgentsPaused, areKeysChanged }: CommittedChanges): Heard {
  const changes: Change[] = [];
  const notices = new Map<string, Notice>();
  for (const of of news) {
    if ("deliveryId" in of && of.deliveryId !== undefined) {
      changes.push([deliveryChange(of) === "recorded" ? "r" : "o", of.deliveryId]);
    }
    switch (of.kind) {
      case "entries": {
        const [first, last] = [of.entries[0]?.seq ?? 0, of.entries.at(-1)?.seq ?? 0];
        changes.push(["e", ...wordsOf(of.session), first, last]);
        break;
      }
      case "deleted":
        changes.push(["d", ...wordsOf(of.session), of.end.seq, of.end.at]);
        break;
      case "cancel":
        changes.push(["c", of.turnId]);
        break;
      case "compaction":
        changes.push(["p", of.compactionId]);
        break;
      case "gateway":
        notices.set(of.kind, ["gateway", of.entries.at(-1)?.seq ?? 0]);
        break;
      case "beat":
      case "announcement":
        notices.set(of.kind, [of.kind, []]);
    }
  }
  if (areKeysChanged) notices.set("keys", ["keys", []]);
  if (areAgentsPaused) notices.set("paused", ["paused", []]);
  return { changes, notices: [...notices.values()] };
}

function wordsOf({ ordinal, sessionId, agent, contextBytes }: SessionRef): Ref {
  return [ordinal, keepText(sessionId), agent, contextBytes];
}

export function refOf([, ordinal, sessionId, agent, contextBytes]: readonly [
  "e" | "d",
  ...Ref,
  ...number[],
]): SessionRef {
  return { ordinal, sessionId: readText(sessionId), agent, contextBytes };
}

/** As notifications, in pieces that each can hold. One that fits in none is found at the next look. */
export function payloadsOf(node: string, { changes, notices }: Heard): string[] {
  const count = changes.length + notices.length;
  const whole = JSON.stringify([node, [], changes, notices]);
  if (count > 0 && Buffer.byteLength(whole) <= MOST_BYTES) return [whole];
  if (count < 2) return [];
  const [change, notice] = [Math.ceil(changes.length / 2), Math.floor(notices.length / 2)];
  return [
    ...payloadsOf(node, { changes: changes.slice(0, change), notices: notices.slice(0, notice) }),
    ...payloadsOf(node, { changes: changes.slice(change), notices: notices.slice(notice) }),
  ];
}

/** The news of another gateway; undefined for this gateway's own news, which come back, too. */
export function readPayload(payload: string, own: string): Heard | undefined {
  const [node, , changes = [], notices = []] = JSON.parse(payload) as [string, unknown?, Change[]?, Notice[]?];
  return node === own ? undefined : { changes, notices };
}
