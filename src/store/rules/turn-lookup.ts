import type { Claim, Page, Turn, TurnQuery } from "#store/store.ts";
import { holds } from "./leases.ts";
import { invalidCursor, MOST_SCANNED } from "./pages.ts";
import {
  isCompaction,
  isOpen,
  type OpenTurnRecord,
  type Records,
  type Rule,
  type RuleInPieces,
  type TurnRecord,
} from "./records.ts";

/** The turns that are looked at together, before other work runs. */
const SCAN_BATCH = 500;

export const getTurn: Rule<"getTurn"> = (records, turnId) => {
  const record = findTurn(records, turnId);
  return record && withReply(records, record);
};

/** The turn with its reply, which the journal has where the engine did not give it. */
export function withReply(records: Records, { turn, ordinal, replySeq }: TurnRecord): Turn {
  if (replySeq === 0 || turn.reply !== undefined) return turn;
  const [entry] = records.journal(ordinal).after(replySeq - 1, 1);
  return { ...turn, reply: entry?.name === "message.completed" ? entry.text : undefined };
}

/** The turn, unless its session is deleted: then it is about to be erased. */
export function findTurn(records: Records, turnId: string): TurnRecord | undefined {
  const record = records.turns.find(turnId);
  return record && records.sessions.at(record.ordinal, record.turn.sessionId) && record;
}

/** The running turn, if the claim is valid. */
export function turnOfClaim(records: Records, claim: Claim): OpenTurnRecord | undefined {
  const record = records.turns.find(claim.turnId);
  return record && isOpen(record) && holds(claim, record.open.lease, record.turn.attempt) ? record : undefined;
}

export const listTurns: RuleInPieces<"listTurns"> = function* (records, query) {
  const before = query.cursor === undefined ? undefined : decodePlace(query.cursor);
  if (query.status === "queued" || query.status === "running") return listOpenTurns(records, query, before);
  const items: Turn[] = [];
  let through = before;
  for (let looked = 0; looked < MOST_SCANNED; looked += SCAN_BATCH) {
    if (looked > 0) yield;
    const found = records.turns.before(through, SCAN_BATCH);
    for (const record of found) {
      const { turn, ordinal } = record;
      // All compactions come after all other turns.
      if (isCompaction(record)) return pageOf(items, undefined);
      through = turn.turnId;
      if (!matchesTurn(query, turn) || !records.sessions.at(ordinal, turn.sessionId)) continue;
      if (items.length === query.limit) return pageOf(items, items.at(-1)?.turnId);
      items.push({ ...turn, reply: undefined });
    }
    if (found.length < SCAN_BATCH) return pageOf(items, undefined);
  }
  return pageOf(items, through);
};

function listOpenTurns(records: Records, query: TurnQuery, before: string | undefined): Page<Turn> {
  const turns = records.turns
    .open(query.agent)
    .filter((record) => !isCompaction(record))
    .map(({ turn }) => turn)
    .filter((turn) => (before === undefined || turn.turnId < before) && matchesTurn(query, turn));
  turns.sort((a, b) => (a.turnId < b.turnId ? 1 : -1));
  const items = turns.slice(0, query.limit);
  return pageOf(items, turns.length > query.limit ? items.at(-1)?.turnId : undefined);
}

function matchesTurn({ status, agent, sessionId }: TurnQuery, turn: Turn): boolean {
  return (
    (status === undefined || turn.status === status) &&
    (agent === undefined || turn.agent === agent) &&
    (sessionId === undefined || turn.sessionId === sessionId)
  );
}

const PREFIX = "turn_";

/** `last`: the last turn of the page, or the last that was looked at. The cursor is its place in the order of ids. */
function pageOf(items: Turn[], last: string | undefined): Page<Turn> {
  return { items, next: last === undefined ? undefined : `t${last.slice(PREFIX.length)}` };
}

function decodePlace(cursor: string): string {
  if (!/^t[0-9A-Za-z]{1,40}$/.test(cursor)) throw invalidCursor();
  return PREFIX + cursor.slice(1);
}
