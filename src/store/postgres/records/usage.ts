import type { Records } from "#store/rules/records.ts";
import type { UsageCount, UsageCounts } from "#store/store.ts";
import { COUNT_BYTES, COUNT_NAMES, HOUR, NO_COUNTS } from "#store/usage-counts.ts";
import { encodeText } from "../texts.ts";
import { bounded, json, number, quote, type Row, type Sql, sql, text } from "./sql.ts";
import type { Part, Transaction } from "./transaction.ts";

type Counted = Omit<UsageCount, keyof UsageCounts>;

const KEYS = ["hour", "agent", "model", "surface", "caller"];
function columnOf(name: string): string {
  return name === "latencyMs" ? "latency_ms" : name;
}
function typeOf(name: string): string {
  return `${name} ${name === "latency_ms" ? "double precision" : "bigint"}`;
}
const COLUMNS = COUNT_NAMES.map(columnOf);
const TYPES = [...KEYS.map((name) => `${name} ${name === "hour" ? "bigint" : "text"}`), ...COLUMNS.map(typeOf)];
const DAY = 24 * HOUR;
/** The hours with counters. The query jumps from hour to hour in the index, so that it does not read all counters. */
const HOURS = sql`with recursive hours as (
    select min(hour) as hour from usage_counts
    union all
    select (select min(u.hour) from usage_counts u where u.hour > h.hour) from hours h where h.hour is not null
  )
  select hour from hours where hour is not null`;
const SUMS = COLUMNS.map((name) => `sum(${name})::double precision as ${name}`).join(", ");

function rowOf({ hour, agent, model, surface, caller }: Counted) {
  return { hour, agent, model: encodeText(model), surface, caller: encodeText(caller) };
}

/** The counters of usage. A transaction only adds to them. */
export class UsageTable implements Part {
  readonly #transaction: Transaction;
  #added = new Map<string, { of: Counted; counts: UsageCounts }>();
  #hours: readonly number[] = [];

  constructor(transaction: Transaction) {
    this.#transaction = transaction;
    transaction.add(this);
  }

  readonly records: Records["usage"] = {
    add: (of, change) => {
      const key = JSON.stringify(rowOf(of));
      const added = this.#added.get(key) ?? { of, counts: { ...NO_COUNTS } };
      if (!this.#added.has(key) && !this.#isThere(of)) this.#transaction.count("bytes", COUNT_BYTES);
      this.#added.set(key, added);
      for (const name of Object.keys(change) as (keyof UsageCounts)[]) added.counts[name] += change[name] ?? 0;
    },
    nextHour: (from) => {
      if (this.#hours.length === 0) this.#hours = this.#transaction.read(HOURS).map(({ hour }) => number(hour));
      return this.#hours.find((hour) => hour >= from);
    },
    // A rule reads hour by hour. Whole days are loaded together.
    between: (from, to, agent) => {
      const days = [Math.floor(from / DAY) * DAY, Math.ceil(to / DAY) * DAY] as const;
      const ofAgent = agent === undefined ? "" : sql`and agent = ${quote(encodeText(agent))}`;
      const found = sql`select ${KEYS.join(", ")}, ${SUMS} from usage_counts
        where hour >= ${bounded(days[0])} and hour < ${bounded(days[1])} ${ofAgent} group by ${KEYS.join(", ")} order by hour`;
      const rows = this.#transaction.read(found);
      return rows.filter(({ hour }) => number(hour) >= from && number(hour) < to).map(readCount);
    },
    deleteEndedBy: (time) => {
      const ended = sql`where hour <= ${bounded(Math.floor(time - HOUR))}`;
      const found = sql`select count(*) as ended from (select distinct ${KEYS.join(", ")} from usage_counts ${ended}) as counters`;
      const count = (this.#transaction.read(found)[0]?.ended as number | undefined) ?? 0;
      if (count === 0) return;
      this.#transaction.count("bytes", -count * COUNT_BYTES);
      this.#transaction.run(sql`delete from usage_counts ${ended}`);
    },
  };

  #isThere(of: Counted): boolean {
    const { hour, agent, model, surface, caller } = rowOf(of);
    const found = sql`select 1 as found from usage_counts where hour = ${bounded(hour)} and agent = ${quote(agent)}
      and model = ${quote(model)} and surface = ${quote(surface)} and caller = ${quote(caller)} limit 1`;
    return this.#transaction.read(found).length > 0;
  }

  reset(): void {
    this.#added = new Map();
  }

  saved(): Sql[] {
    if (this.#added.size === 0) return [];
    const rows = [...this.#added.values()].map(({ of, counts }) => {
      const columns = Object.entries(counts).map(([name, count]) => [columnOf(name), count]);
      return { ...rowOf(of), ...Object.fromEntries(columns) };
    });
    const names = [...KEYS, ...COLUMNS].join(", ");
    const sums = COLUMNS.map((name) => `${name} = usage_counts.${name} + excluded.${name}`).join(", ");
    return [
      sql`insert into usage_counts (lane, ${names}) select 'all', ${names} from json_to_recordset(${json(rows)}) as of (${TYPES.join(", ")})
      on conflict (${KEYS.join(", ")}, lane) do update set ${sums}`,
    ];
  }
}

function readCount(row: Row): UsageCount {
  const of = { hour: number(row.hour), agent: row.agent as string, model: text(row.model), caller: text(row.caller) };
  const counts = Object.fromEntries(COUNT_NAMES.map((name) => [name, number(row[columnOf(name)])])) as UsageCounts;
  return { surface: row.surface as UsageCount["surface"], ...of, ...counts };
}
