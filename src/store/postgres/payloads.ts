import type { SessionRef } from "#store/store.ts";
import type { Kept } from "./records/records.ts";
import { keepText, readText } from "./texts.ts";

type Ref = [ordinal: number, sessionId: string, agent: string, contextBytes: number];
/** The content of a notification, in short: entries, the end of a session, a turn to be cancelled, a compaction that may begin, work. */
export type Change =
  | ["e", ...Ref, from: number, through: number]
  | ["d", ...Ref, seq: number, at: number]
  | ["c", turnId: string]
  | ["p", compactionId: string]
  | ["w"];
export type Notice =
  | [name: "beat" | "announcement" | "keys", of: readonly []]
  | [name: "gateway", last: number]
  | [name: "paused" | "textsAsked" | "textsPut", of: readonly string[]];
export type Heard = { changes: readonly Change[]; notices: readonly Notice[] };

/** A notification takes 8 000 bytes. */
const MOST_BYTES = 7_000;

/** The news of a transaction for others. */
export const toldOf = ({ news, paused, areKeysChanged }: Kept): Heard => {
  const changes: Change[] = [];
  const notices = new Map<string, Notice>();
  for (const of of news) {
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
  const pauses = paused.map(({ agent, version, pausedAt }) => JSON.stringify([agent, version, pausedAt ?? null]));
  if (pauses.length > 0) notices.set("paused", ["paused", pauses]);
  return { changes, notices: [...notices.values()] };
};

const wordsOf = ({ ordinal, sessionId, agent, contextBytes }: SessionRef): Ref => [
  ordinal,
  keepText(sessionId),
  agent,
  contextBytes,
];

export const refOf = ([, ordinal, sessionId, agent, contextBytes]: readonly [
  "e" | "d",
  ...Ref,
  ...number[],
]): SessionRef => {
  return { ordinal, sessionId: readText(sessionId), agent, contextBytes };
};

/** As notifications, in pieces that each can hold. One that fits in none is found at the next look. */
export const payloadsOf = (node: string, heard: Heard): string[] => {
  const { changes, notices } = heard;
  if (changes.length + notices.length === 0) return [];
  const whole = JSON.stringify([node, [], changes, notices]);
  if (Buffer.byteLength(whole) <= MOST_BYTES) return [whole];
  return halvesOf(heard).flatMap((half) => payloadsOf(node, half));
};

const halvesOf = ({ changes, notices }: Heard): Heard[] => {
  if (changes.length + notices.length > 1) {
    const change = Math.ceil(changes.length / 2);
    const notice = changes.length > 0 ? 0 : Math.ceil(notices.length / 2);
    return [
      { changes: changes.slice(0, change), notices: notices.slice(0, notice) },
      { changes: changes.slice(change), notices: notices.slice(notice) },
    ];
  }
  const [name, of] = notices[0] ?? [];
  if (name === undefined || typeof of === "number" || of === undefined || of.length < 2) return [];
  const middle = Math.ceil(of.length / 2);
  const partOf = (part: readonly string[]): Heard => ({ changes: [], notices: [[name, part] as Notice] });
  return [partOf(of.slice(0, middle)), partOf(of.slice(middle))];
};

/** The news of another gateway; undefined for this gateway's own news, which come back, too. */
export const readPayload = (payload: string, own: string): Heard | undefined => {
  const [node, , changes = [], notices = []] = JSON.parse(payload) as [string, unknown?, Change[]?, Notice[]?];
  return node === own ? undefined : { changes, notices };
};
