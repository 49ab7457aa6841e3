import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ArrayStream } from "#store/memory/stream.ts";
import { Servers } from "#store/postgres/connect.ts";
import { RECORD_TABLES } from "#store/postgres/migrations/schema.ts";
import { Journals } from "#store/postgres/records/journal.ts";
import { planOf, type Row, type Sql } from "#store/postgres/records/sql.ts";
import { Transaction } from "#store/postgres/records/transaction.ts";
import type { Journal, Stream } from "#store/rules/streams.ts";
import type { Entry } from "#store/store.ts";
import { GATEWAY, gatewayStream } from "#store/tables/journal-rows.ts";
import { weighEntry } from "#store/tables/layouts.ts";
import { createManualClock } from "#test/harness/clock.ts";
import { postgresTests } from "#test/harness/postgres.ts";
import { createRandom } from "#test/harness/random.ts";

const random = createRandom(43);

function entry(seq: number): Entry {
  const of = { seq, at: 1_000 + seq, turnId: `turn_${seq}` };
  const text = random.pick(["short", "with\0null", "half \ud800", "é".repeat(200)]);
  const toolCalls = random.chance(0.5) ? [{ name: "look", arguments: "{}", result: "\udc00" }] : undefined;
  if (seq % 3 === 0) return { name: "turn.queued", ...of };
  if (seq % 3 === 1) {
    return { name: "message.completed", ...of, messageId: `msg_${seq}`, text, toolCalls } as Entry;
  }
  return { name: "turn.completed", ...of, usage: { input: 1, output: 2 }, model: undefined, reply: text } as Entry;
}

/** The next entries; the end of a turn repeats the text before it. */
function entries(first: number, count: number): Entry[] {
  const made = Array.from({ length: count }, (_, n) => entry(first + n));
  for (const [n, one] of made.entries()) {
    const before = made[n - 1];
    if (one.name === "turn.completed" && before?.name === "message.completed") one.reply = before.text;
  }
  return made;
}

async function query(client: pg.Client, statement: Sql): Promise<Row[]> {
  const { text, values } = planOf(statement);
  return (await client.query(text.replace(/\$(\d+)/g, (_, n) => values[n - 1] as string))).rows;
}

type Weighed = { bytes: number };

/** Runs work in passes, as a transaction does, and saves its changes. Returns its answer and the number of exchanges before that. */
async function transact<T>(client: pg.Client, state: Weighed, work: (journals: Journals) => T): Promise<[T, number]> {
  const transaction = new Transaction(createManualClock());
  let bytes = 0;
  const journals = new Journals(transaction, (change) => {
    bytes += change;
  });
  for (let exchanges = 0; ; exchanges++) {
    transaction.reset();
    bytes = 0;
    const answer = work(journals);
    const wanted = transaction.wanted();
    for (const { sql, take } of wanted) take(await query(client, sql));
    if (wanted.length > 0) continue;
    for (const { sql } of transaction.saved()) await query(client, sql);
    state.bytes += bytes;
    return [answer, exchanges];
  }
}

/** Reads a stream at its ends and in the middle. */
function readAll(stream: Stream<Entry>, first: number, last: number) {
  const seqs = [0, first - 1, first + 2, last - 4, last + 10, Infinity];
  return seqs.flatMap((seq) =>
    [1, 5, 500].map((limit) => [seq, limit, stream.after(seq, limit), stream.before(seq, limit, true)]),
  );
}

await postgresTests((server) => {
  describe("the journals of PostgreSQL", () => {
    let client: pg.Client;
    beforeAll(async () => {
      client = await new Servers([await server.createDatabase()]).connect();
      await client.query(RECORD_TABLES);
    });
    afterAll(async () => await client.end());

    it("read and erase like an array, including entries of the same transaction", async () => {
      const state = { bytes: 0 };
      const array = new ArrayStream<Entry>();
      await transact(client, state, (journals) => journals.of(8).append(entries(1, 5)));
      const others = state.bytes;
      for (let step = 0; step < 25; step++) {
        const appended = entries(array.last + 1, random.below(9));
        const erased = random.chance(0.4) ? random.below(array.last - array.first + appended.length + 2) : 0;
        const erasesFirst = random.chance(0.3);
        const [first, last] = [array.first, array.last];
        const change = (journal: Stream<Entry>, erase: (oldest: Entry[]) => void) => {
          if (erasesFirst) erase(journal.after(first - 1, erased));
          journal.append(appended);
          if (!erasesFirst) erase(journal.after(first - 1, erased));
          return readAll(journal, first, last);
        };
        const expected = change(array, (oldest) => array.eraseBefore((oldest.at(-1)?.seq ?? 0) + 1));
        const [during] = await transact(client, state, (journals) => {
          const journal: Journal = journals.of(7);
          return change(journal, (oldest) => journal.erase(oldest));
        });
        expect(during).toEqual(expected);
        const [after] = await transact(client, state, (journals) => readAll(journals.of(7), first, last));
        expect(after).toEqual(expected);
        const weights = array.after(0, 500).map(weighEntry);
        expect(state.bytes).toBe(weights.reduce((sum, bytes) => sum + bytes, others));
      }
      const [untouched] = await transact(client, state, (journals) => journals.of(8).after(0, 10).length);
      expect(untouched).toBe(5);
    });

    it("leave out tool calls unless a read requests them", async () => {
      const state = { bytes: 0 };
      const toolCalls = [{ name: "look", arguments: "{}", result: "42" }];
      const message = { name: "message.completed", seq: 1, at: 1, turnId: "t", messageId: "m", text: "so", toolCalls };
      await transact(client, state, (journals) => journals.of(9).append([message as unknown as Entry]));
      const [without] = await transact(client, state, (journals) => journals.of(9).before(Infinity, 1));
      const [withCalls] = await transact(client, state, (journals) => journals.of(9).before(Infinity, 1, true));
      expect(without).toEqual([{ ...message, toolCalls: undefined }]);
      expect(withCalls).toEqual([message]);
    });

    it("erase entries that were already read without another exchange", async () => {
      const state = { bytes: 0 };
      for (const first of [1, 4, 7])
        await transact(client, state, (journals) => journals.of(10).append(entries(first, 3)));
      const exchanges: number[] = [];
      for (const limit of [5, 100]) {
        const [, count] = await transact(client, state, (journals) => {
          const journal = journals.of(10);
          journal.erase(journal.after(0, limit));
        });
        exchanges.push(count);
      }
      expect(exchanges).toEqual([1, 1]);
      expect(state.bytes).toBe(0);
      const { rows } = await client.query("select from journal where session = 10");
      expect(rows).toHaveLength(0);
    });

    it("delete old rows of the gateway's stream in batches", async () => {
      const state = { bytes: 0 };
      const ends = { first: 1, last: 0 };
      for (let n = 1; n <= 1_050; n += 50) {
        let changed = { ...ends };
        await transact(client, state, (journals) => {
          changed = { ...ends };
          const stream = gatewayStream(journals, changed);
          stream.append(
            Array.from({ length: 50 }, (_, at) => ({ seq: n + at, at: n, name: "agent.connected" }) as never),
          );
          if (stream.last - stream.first >= 20) stream.eraseBefore(stream.last - 19);
        });
        Object.assign(ends, changed);
      }
      expect(ends).toEqual({ first: 1_031, last: 1_050 });
      const [seqs] = await transact(client, state, (journals) =>
        gatewayStream(journals, { ...ends })
          .after(0, 100)
          .map(({ seq }) => seq),
      );
      expect(seqs).toEqual(Array.from({ length: 20 }, (_, n) => 1_031 + n));
      const { rows } = await client.query("select first_seq from journal where session = $1", [GATEWAY]);
      expect(rows.map(({ first_seq }) => first_seq)).toEqual([951, 1_001]);
    });
  });
});
