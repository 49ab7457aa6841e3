import type { Page, Turn, TurnQuery } from "#store/store.ts";
import { decodeTurnCursor, encodeTurnCursor, isOpen, LOOKED_AT_TOGETHER, MOST_LOOKED_AT } from "#store/turn-pages.ts";
import type { Frame } from "./frame.ts";
import { keepText } from "./texts.ts";
import { readTurn, type TurnRow } from "./turn-codec.ts";

type LookedAt = { turn_id: string; row: TurnRow | null };

/** The turns that have not ended, and those of a session, have an index of their own: all are read. Of others the newest are looked at, some at a time. */
export const listTurns = async (frame: Frame, query: TurnQuery): Promise<Page<Turn>> => {
  const before = query.cursor === undefined ? undefined : decodeTurnCursor(query.cursor);
  return isOpen(query.status) || query.sessionId !== undefined
    ? listFew(frame, query, before)
    : scan(frame, query, before);
};

const listFew = async (frame: Frame, query: TurnQuery, before: string | undefined): Promise<Page<Turn>> => {
  const { conditions, values, value } = conditionsOf(query);
  const few: string[] = [];
  if (isOpen(query.status)) few.push("ended_at is null");
  if (query.sessionId !== undefined)
    few.push(`session = (select ordinal from sessions where session_id = ${value(keepText(query.sessionId))})`);
  if (before !== undefined) conditions.push(`t.turn_id < ${value(before)}`);
  const rows = await frame.query<{ row: TurnRow }>(
    // `offset 0`: else PostgreSQL may look for the newest of them among all turns.
    `select row_to_json(t) as row from (select * from turns where ${few.join(" and ")} offset 0) as t
    join sessions s on s.ordinal = t.session and t.seq > s.first_seq
    ${conditions.length > 0 ? `where ${conditions.join(" and ")}` : ""}
    order by t.turn_id desc limit ${value(query.limit + 1)}`,
    values,
  );
  const items = rows.slice(0, query.limit).map(({ row }) => summaryOf(row));
  const last = items.at(-1);
  return { items, next: rows.length > query.limit && last ? encodeTurnCursor(last.turnId) : undefined };
};

const scan = async (frame: Frame, query: TurnQuery, before: string | undefined): Promise<Page<Turn>> => {
  const items: Turn[] = [];
  const isFiltered = query.status !== undefined || query.agent !== undefined;
  const most = isFiltered ? LOOKED_AT_TOGETHER : Math.min(query.limit + 1, LOOKED_AT_TOGETHER);
  let through = before;
  for (let looked = 0; looked < MOST_LOOKED_AT; looked += most) {
    const rows = await lookAt(frame, query, through, most);
    for (const { turn_id, row } of rows) {
      if (row && items.length === query.limit)
        return { items, next: encodeTurnCursor(items.at(-1)?.turnId ?? turn_id) };
      if (row) items.push(summaryOf(row));
      through = turn_id;
    }
    if (rows.length < most) return { items, next: undefined };
  }
  return { items, next: through && encodeTurnCursor(through) };
};

/** The next turns, with all that is known of those that the list holds. */
const lookAt = (frame: Frame, query: TurnQuery, through: string | undefined, most: number): Promise<LookedAt[]> => {
  const { conditions, values, value } = conditionsOf(query);
  const wanted = ["s.ordinal is not null", ...conditions].join(" and ");
  const behind = through === undefined ? "" : `where turn_id < ${value(through)}`;
  return frame.query<LookedAt>(
    `select t.turn_id, case when ${wanted} then row_to_json(t) end as row
    from (select * from turns ${behind} order by turn_id desc limit ${value(most)}) as t
    left join sessions s on s.ordinal = t.session and t.seq > s.first_seq
    order by t.turn_id desc`,
    values,
  );
};

const conditionsOf = ({ status, agent }: TurnQuery) => {
  const values: unknown[] = [];
  const value = (of: unknown): string => `$${values.push(of)}`;
  const conditions: string[] = [];
  if (status !== undefined) conditions.push(`t.status = ${value(status)}`);
  if (agent !== undefined) conditions.push(`t.agent = ${value(agent)}`);
  return { conditions, values, value };
};

const summaryOf = (row: TurnRow): Turn => readTurn({ row, reply: null });
