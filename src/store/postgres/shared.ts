import type { RateCount, RateLeft, ReplyText, SharedStore } from "#store/store.ts";
import type { PeerNews } from "./payloads.ts";
import type { PeerSync } from "./peer-sync.ts";
import type { Rate } from "./records/rates.ts";
import type { PostgresRecords } from "./records/records.ts";
import { double, json, quote, type Row, type Sql, sql, textList } from "./records/sql.ts";
import { decodeText, encodeText } from "./texts.ts";
import type { TransactionBatcher } from "./transaction-batcher.ts";

type Limit = { maxRequests: number; windowMs: number };
type Parts = { node: string; reader: TransactionBatcher; writer: TransactionBatcher; others: PeerSync };

const DAY = 86_400_000;
/** A window is divided into this number of slices. Requests are counted per slice. */
const SLICES = 60;

export function sharedStore({ node, reader, writer, others }: Parts): SharedStore {
  /** `make` gets the SQL expression for the current time, and returns statements by their names. */
  const write = (make: (time: Sql) => Readonly<Record<string, Sql>>): Promise<void> =>
    writer.run(({ transaction }) => {
      for (const [name, one] of Object.entries(make(transaction.sqlTime))) transaction.run(name, one);
    });
  const read = async (name: string, make: (time: Sql) => Sql): Promise<readonly Row[]> =>
    await reader.run(({ transaction }) => transaction.read(name, make(transaction.sqlTime)));

  return {
    countRequest: (key, limit) => writer.run((records) => countRequest(records, key, limit)),
    readRequests: (keys, limit) => reader.run((records) => keys.map((key) => readRequests(records, key, limit))),

    gateways: () => others.count,

    haveAgents: async (agents) => {
      await write((time) => ({
        gateways_save: sql`insert into gateways (node, agents, seen) values (${quote(node)}, ${textList(agents)}, ${time})
        on conflict (node) do update set agents = excluded.agents, seen = excluded.seen`,
        gateways_delete_old: sql`delete from gateways where seen < ${time} - ${DAY}`,
      }));
    },
    missingAgents: async (agents, withinMs) => {
      const rows = await read(
        "gateways_missing_agents",
        (time) => sql`select name from unnest(${textList(agents)}) as of (name)
        where not exists (select from gateways where seen > ${time} - ${double(withinMs)} and name = any (agents))`,
      );
      return rows.map(({ name }) => name as string);
    },

    askTexts: (sessionIds) => others.notify(noticesOf("textsAsked", sessionIds)),

    putTexts: async (pieces) => {
      const rows = pieces.map(({ sessionId, seq, offset, turnId, messageId, text }) => {
        const of = { session_id: encodeText(sessionId), seq, place: offset, length: text.length };
        return { ...of, turn_id: turnId, message_id: messageId, text: encodeText(text) };
      });
      const names = "session_id, seq, place, length, turn_id, message_id, text";
      await write(() => ({
        reply_texts_insert: sql`insert into reply_texts (${names}) select ${names} from json_to_recordset(${json(rows)}) as of (
        session_id text, seq bigint, place integer, length integer, turn_id text, message_id text, text text) on conflict do nothing`,
      }));
      const sessionIds = [...new Set(pieces.map(({ sessionId }) => sessionId))];
      await others.notify(noticesOf("textsPut", sessionIds));
    },

    readTexts: async (places) => {
      const wanted = new Map(places.map((place) => [place.sessionId, place]));
      const rows = places.map(({ sessionId, seq, offset }) => ({ session: encodeText(sessionId), seq, place: offset }));
      const found = await read(
        "reply_texts_load",
        () => sql`select t.session_id, t.seq, t.place, t.turn_id, t.message_id, t.text
        from json_to_recordset(${json(rows)}) as of (session text, seq bigint, place integer)
        join reply_texts t on t.session_id = of.session and t.seq = (select max(n.seq) from reply_texts n where n.session_id = of.session)
        where t.seq >= of.seq and (t.seq > of.seq or t.place + t.length > of.place) order by t.session_id, t.place`,
      );
      return found.map((row): ReplyText => {
        const sessionId = decodeText(row.session_id as string);
        const place = wanted.get(sessionId);
        const known = place && place.seq === row.seq ? Math.max(place.offset - (row.place as number), 0) : 0;
        const of = {
          sessionId,
          seq: row.seq as number,
          turnId: row.turn_id as string,
          messageId: row.message_id as string,
        };
        return { ...of, offset: (row.place as number) + known, text: decodeText(row.text as string).slice(known) };
      });
    },

    dropTexts: async (replies) => {
      const rows = replies.map(({ sessionId, seq }) => ({ session: encodeText(sessionId), seq }));
      await write(() => ({
        reply_texts_delete: sql`delete from reply_texts t using json_to_recordset(${json(rows)}) as of (session text, seq bigint)
        where t.session_id = of.session and t.seq = of.seq`,
      }));
    },
  };
}

/** The requests in the current window, by slice: their number, and the time until the whole slice is outside the window. */
function countedIn(rate: Rate | undefined, windowMs: number, time: number) {
  const width = windowMs / SLICES;
  // If the width differs, the limit's window was changed, and the old counts are not valid.
  if (rate?.widthMs !== width) return [];
  const counted = rate.slices.map((slice, n) => {
    return { slice, count: rate.counts[n] ?? 0, endsIn: (slice + 1) * width + windowMs - time };
  });
  return counted.filter(({ count, endsIn }) => count > 0 && endsIn > 0);
}

function usedOf(counted: ReturnType<typeof countedIn>): number {
  return counted.reduce((sum, { count }) => sum + count, 0);
}

function countRequest(records: PostgresRecords, key: string, { maxRequests, windowMs }: Limit): RateCount {
  const { time } = records.transaction;
  const counted = countedIn(records.rates.find(key), windowMs, time);
  const used = usedOf(counted);
  if (used >= maxRequests) return { waitMs: Math.ceil(counted[0]?.endsIn ?? windowMs) };
  const widthMs = windowMs / SLICES;
  const slice = Math.floor(time / widthMs);
  const last = counted.at(-1);
  if (last && last.slice >= slice) last.count++;
  else counted.push({ slice, count: 1, endsIn: windowMs });
  records.rates.put(key, {
    slices: counted.map((part) => part.slice),
    counts: counted.map(({ count }) => count),
    widthMs,
    endsAt: time + windowMs + widthMs,
  });
  return { left: maxRequests - used - 1 };
}

function readRequests(records: PostgresRecords, key: string, { maxRequests, windowMs }: Limit): RateLeft {
  const counted = countedIn(records.rates.find(key), windowMs, records.transaction.time);
  const last = counted.at(-1);
  return { left: Math.max(0, maxRequests - usedOf(counted)), wholeInMs: last && Math.ceil(last.endsIn) };
}

/** One notice per session, so that a long list can be split into several notifications. */
function noticesOf(name: "textsAsked" | "textsPut", sessionIds: readonly string[]): PeerNews {
  return { changes: [], notices: sessionIds.map((sessionId) => [name, [sessionId]]) };
}
