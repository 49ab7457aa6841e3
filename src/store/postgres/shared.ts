import { type Clock, systemClock } from "#kit/clock.ts";
import type { RateCount, ReplyText, SharedStore } from "#store/store.ts";
import type { Neighbours } from "./neighbours.ts";
import type { PostgresRecords } from "./records/records.ts";
import { bounded, double, json, number, quote, type Row, type Sql, sql, text, textList } from "./records/sql.ts";
import type { Runner } from "./runner.ts";
import { keepText } from "./texts.ts";

type Limit = { maxRequests: number; windowMs: number };
type Counted = { used: number; waits: number | null };
type Parts = { clock: Clock; node: string; reader: Runner; writer: Runner; neighbours: Neighbours };

const DAY = 86_400_000;

export const sharedStore = ({ clock, node, reader, writer, neighbours }: Parts): SharedStore => {
  /** The time as the functions of the database take it: null for that of its own clock. */
  const atMs = (): Sql => (clock === systemClock ? sql`null` : sql`${double(clock.monotonic())}`);
  const write = (...all: Sql[]): Promise<void> =>
    writer.run(({ transaction }) => {
      for (const one of all) transaction.run(one);
    });
  const read = async (one: Sql): Promise<readonly Row[]> =>
    await reader.run(({ transaction }) => transaction.read(one));

  let counted = 0;

  return {
    countRequest: async (key, limit) => {
      const count = sql`select count_request(${quote(keepText(key))}, ${bounded(limit.maxRequests)}::integer, ${double(limit.windowMs)}, ${atMs()}) as counted`;
      const id = `request ${++counted}`;
      return await writer.run((records) => countOf(records, limit, count, id));
    },

    readRequests: async (keys, { maxRequests, windowMs }) => {
      const rows = await read(usesOf(keys, windowMs, sql`engine_time(${atMs()})`));
      return rows.map(({ used, whole_in }) => ({
        left: Math.max(0, maxRequests - number(used)),
        wholeInMs: whole_in === null ? undefined : Math.ceil(number(whole_in)),
      }));
    },

    gateways: () => neighbours.count,

    haveAgents: async (agents) => {
      await write(
        sql`insert into gateways (node, agents, seen) values (${quote(node)}, ${textList(agents)}, engine_time(${atMs()}))
        on conflict (node) do update set agents = excluded.agents, seen = excluded.seen`,
        sql`delete from gateways where seen < engine_time(${atMs()}) - ${DAY}`,
      );
    },
    goneAgents: async (agents, withinMs) => {
      const rows = await read(sql`select name from unnest(${textList(agents)}) as of (name)
        where not exists (select from gateways where seen > (select engine_time(${atMs()})) - ${double(withinMs)} and name = any (agents))`);
      return rows.map(({ name }) => name as string);
    },

    askTexts: (sessionIds) => neighbours.notify({ changes: [], notices: [["textsAsked", sessionIds]] }),

    putTexts: async (pieces) => {
      const rows = pieces.map(({ sessionId, seq, offset, turnId, messageId, text }) => {
        const of = { session_id: keepText(sessionId), seq, place: offset, length: text.length };
        return { ...of, turn_id: turnId, message_id: messageId, text: keepText(text) };
      });
      const names = "session_id, seq, place, length, turn_id, message_id, text";
      await write(sql`insert into reply_texts (${names}) select ${names} from json_to_recordset(${json(rows)}) as of (
        session_id text, seq bigint, place integer, length integer, turn_id text, message_id text, text text) on conflict do nothing`);
      const sessionIds = [...new Set(pieces.map(({ sessionId }) => sessionId))];
      await neighbours.notify({ changes: [], notices: [["textsPut", sessionIds]] });
    },

    readTexts: async (places) => {
      const wanted = new Map(places.map((place) => [place.sessionId, place]));
      const rows = places.map(({ sessionId, seq, offset }) => ({ session: keepText(sessionId), seq, place: offset }));
      const found = await read(sql`select t.session_id, t.seq, t.place, t.turn_id, t.message_id, t.text
        from json_to_recordset(${json(rows)}) as of (session text, seq bigint, place integer)
        join reply_texts t on t.session_id = of.session and t.seq = (select max(n.seq) from reply_texts n where n.session_id = of.session)
        where t.seq >= of.seq and (t.seq > of.seq or t.place + t.length > of.place) order by t.session_id, t.place`);
      return found.map((row): ReplyText => {
        const sessionId = text(row.session_id);
        const place = wanted.get(sessionId);
        const known = place && place.seq === row.seq ? Math.max(place.offset - number(row.place), 0) : 0;
        const of = {
          sessionId,
          seq: number(row.seq),
          turnId: row.turn_id as string,
          messageId: row.message_id as string,
        };
        return { ...of, offset: number(row.place) + known, text: text(row.text).slice(known) };
      });
    },

    dropTexts: async (replies) => {
      const rows = replies.map(({ sessionId, seq }) => ({ session: keepText(sessionId), seq }));
      await write(sql`delete from reply_texts t using json_to_recordset(${json(rows)}) as of (session text, seq bigint)
        where t.session_id = of.session and t.seq = of.seq`);
    },
  };
};

/** The statement has counted the request as it was read: that is to be kept. */
const countOf = (
  { transaction }: PostgresRecords,
  { maxRequests, windowMs }: Limit,
  count: Sql,
  id: string,
): RateCount => {
  const [row] = transaction.read(count, id);
  transaction.run(sql`select`);
  const { used = 0, waits = null } = (row?.counted ?? {}) as Partial<Counted>;
  return used < maxRequests ? { left: maxRequests - used - 1 } : { waitMs: Math.ceil(waits ?? windowMs) };
};

/** The number of requests of each key that count now, and the ms until none of them does, as `count_request` counts. */
const usesOf = (keys: readonly string[], windowMs: number, time: Sql): Sql => sql`
  select coalesce(found.used, 0)::bigint as used, found.ends - at.time as whole_in
  from ${time} as at (time), unnest(${textList(keys.map(keepText))}) with ordinality as of (key, n)
  left join lateral (
    select sum(part.counted) as used, max((part.slice + 1) * r.width_ms) + ${double(windowMs)} as ends
    from rate_counts r, unnest(r.slices, r.counts) as part (slice, counted)
    where r.key = of.key and r.width_ms = ${double(windowMs)} / 60 and part.counted > 0
      and (part.slice + 1) * r.width_ms + ${double(windowMs)} > at.time
  ) as found on true order by of.n`;
