import { deliveryChange } from "#store/rules/records.ts";
import type { SessionRef } from "#store/store.ts";
import type { CommittedChanges } from "./records/records.ts";
import { decodeText, encodeText } from "./texts.ts";

type Ref = [ordinal: number, sessionId: string, agent: string, contextBytes: number];
/**
 * A change in short form: `e` new entries, `d` a deleted session, `c` a turn to cancel, `p` a compaction that may start, `r` a recorded delivery,
 * `o` a new outcome of a delivery, `w` work.
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
export type PeerNews = { changes: readonly Change[]; notices: readonly Notice[] };

/** PostgreSQL limits a notification to 8 000 bytes. */
const MOST_BYTES = 7_000;

/** The changes of a transaction for other gateways. */
export function newsOf({ news, areAgentsPaused, areKeysChanged }: CommittedChanges): PeerNews {
  const changes: Change[] = [];
  const notices = new Map<string, Notice>();
  for (const of of news) {
    if ("deliveryId" in of && of.deliveryId !== undefined) {
      changes.push([deliveryChange(of) === "recorded" ? "r" : "o", of.deliveryId]);
    }
    switch (of.kind) {
      case "entries": {
        const [first, last] = [of.entries[0]?.seq ?? 0, of.entries.at(-1)?.seq ?? 0];
        changes.push(["e", ...refWordsOf(of.session), first, last]);
        break;
      }
      case "deleted":
        changes.push(["d", ...refWordsOf(of.session), of.end.seq, of.end.at]);
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

function refWordsOf({ ordinal, sessionId, agent, contextBytes }: SessionRef): Ref {
  return [ordinal, encodeText(sessionId), agent, contextBytes];
}

export function refOf([, ordinal, sessionId, agent, contextBytes]: readonly [
  "e" | "d",
  ...Ref,
  ...number[],
]): SessionRef {
  return { ordinal, sessionId: decodeText(sessionId), agent, contextBytes };
}

/** Notifications with these changes, each below the limit. A change that is too large is left out: gateways find it at their next poll. */
export function payloadsOf(node: string, { changes, notices }: PeerNews): string[] {
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

/** The changes in a notification. Undefined for a notification of this gateway itself, which it also receives. */
export function readPayload(payload: string, own: string): PeerNews | undefined {
  const [node, , changes = [], notices = []] = JSON.parse(payload) as [string, unknown?, Change[]?, Notice[]?];
  return node === own ? undefined : { changes, notices };
}
