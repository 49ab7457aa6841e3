import { deliveryChange } from "#store/rules/news.ts";
import type { CompactionResult, SessionRef, WorkKind } from "#store/store.ts";
import type { CommittedChanges } from "./records/records.ts";
import { decodeText, encodeText } from "./texts.ts";

type Ref = [ordinal: number, sessionId: string, agent: string, contextBytes: number];
/**
 * A change in short form: `e` new entries, `d` a deleted session, `c` a turn to cancel, `p` a compaction that has ended, `r` a recorded delivery,
 * `o` a new outcome of a delivery.
 */
export type Change =
  | ["e", ...Ref, from: number, through: number]
  | ["d", ...Ref, seq: number, at: number]
  | ["c", turnId: string]
  | ["p", turnId: string, result: CompactionResult]
  | ["r" | "o", deliveryId: string];
export type Notice =
  | [name: "work", of: WorkKind]
  | [name: "keys" | "paused", of: readonly []]
  | [name: "gateway", last: number]
  | [name: "textsAsked" | "textsPut", of: readonly string[]];
export type PeerNews = { changes: readonly Change[]; notices: readonly Notice[] };

/** PostgreSQL limits a notification to 8 000 bytes. */
const MOST_BYTES = 7_000;
const DETAIL_CHARACTERS = 1_000;

/** The changes of a transaction, as other gateways are notified of them. */
export function newsOf({ news, areAgentsPaused, areKeysChanged }: CommittedChanges): PeerNews {
  const changes: Change[] = [];
  const notices = new Map<string, Notice>();
  for (const item of news) {
    if ("deliveryId" in item && item.deliveryId !== undefined) {
      changes.push([deliveryChange(item) === "recorded" ? "r" : "o", item.deliveryId]);
    }
    switch (item.kind) {
      case "entries": {
        const [first, last] = [item.entries[0]?.seq ?? 0, item.entries.at(-1)?.seq ?? 0];
        changes.push(["e", ...shortRefOf(item.session), first, last]);
        break;
      }
      case "deleted":
        changes.push(["d", ...shortRefOf(item.session), item.end.seq, item.end.at]);
        break;
      case "cancel":
        changes.push(["c", item.turnId]);
        break;
      case "compacted":
        changes.push(["p", item.turnId, shortened(item.result)]);
        break;
      case "gateway":
        notices.set(item.kind, ["gateway", item.entries.at(-1)?.seq ?? 0]);
        break;
      case "work":
        // Turns have their own notification, because usually this gateway claims them first.
        if (item.of !== "turn") notices.set(item.of, ["work", item.of]);
    }
  }
  if (areKeysChanged) notices.set("keys", ["keys", []]);
  if (areAgentsPaused) notices.set("paused", ["paused", []]);
  return { changes, notices: [...notices.values()] };
}

/** A result whose error fits in a notification. */
function shortened(result: CompactionResult): CompactionResult {
  const { error } = result;
  return error ? { error: { name: error.name, detail: error.detail?.slice(0, DETAIL_CHARACTERS) } } : result;
}

function shortRefOf({ ordinal, sessionId, agent, contextBytes }: SessionRef): Ref {
  return [ordinal, encodeText(sessionId), agent, contextBytes];
}

export function sessionOf([, ordinal, sessionId, agent, contextBytes]: readonly [
  "e" | "d",
  ...Ref,
  ...number[],
]): SessionRef {
  return { ordinal, sessionId: decodeText(sessionId), agent, contextBytes };
}

/** Splits the changes into notifications below the size limit. A single change above the limit is omitted: gateways find it at their next poll. */
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
