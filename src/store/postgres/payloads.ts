import type { SessionRef } from "#store/store.ts";
import type { Kept } from "./records/records.ts";
import { keepText, readText } from "./texts.ts";

/** The content of a notification, in short: entries, the end of a session, a turn to be cancelled, a compaction that may begin, work. */
export type Change =
  | ["e", ordinal: number, sessionId: string, agent: string, contextBytes: number, from: number, through: number]
  | ["d", ordinal: number, sessionId: string, agent: string, contextBytes: number, seq: number, at: number]
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

const wordsOf = ({ ordinal, sessionId, agent, contextBytes }: SessionRef): [number, string, string, number] => [
  ordinal,
  keepText(sessionId),
  agent,
  contextBytes,
];

export const refOf = ([ordinal, sessionId, agent, contextBytes]: readonly [
  number,
  string,
  string,
  number,
]): SessionRef => {
  return { ordinal, sessionId: readText(sessionId), agent, contextBytes };
};

/** As notifications, in pieces that each can hold. */
export const payloadsOf = (node: string, heard: Heard): string[] => {
  const { changes, notices } = heard;
  if (changes.length + notices.length === 0) return [];
  const whole = JSON.stringify([node, [], changes, notices]);
  if (Buffer.byteLength(whole) <= MOST_BYTES) return [whole];
  const halves = halvesOf(heard);
  return halves.flatMap((half) => payloadsOf(node, half));
};

const halvesOf = ({ changes, notices }: Heard): Heard[] => {
  const half = <T>(list: readonly T[]): [T[], T[]] => {
    const middle = Math.ceil(list.length / 2);
    return [list.slice(0, middle), list.slice(middle)];
  };
  if (changes.length > 1) {
    const [first, second] = half(changes);
    return [
      { changes: first, notices },
      { changes: second, notices: [] },
    ];
  }
  if (changes.length === 1) {
    // One that fits in no notification is found at the next look.
    return notices.length > 0
      ? [
          { changes, notices: [] },
          { changes: [], notices },
        ]
      : [];
  }
  if (notices.length > 1) return half(notices).map((part) => ({ changes: [], notices: part }));
  const [name, of] = notices[0] as Notice;
  if (typeof of === "number" || of.length < 2) return [];
  return half(of).map((part) => ({ changes: [], notices: [[name, part] as Notice] }));
};

/** The news of another gateway; undefined for those of this one, which come back, too. */
export const readPayload = (payload: string, own: string): Heard | undefined => {
  const [node, , changes = [], notices = []] = JSON.parse(payload) as [string, unknown?, Change[]?, Notice[]?];
  return node === own ? undefined : { changes, notices };
};
