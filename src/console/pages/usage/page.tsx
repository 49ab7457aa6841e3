import { useEffect } from "preact/hooks";
import { rpc } from "#console/app/api.ts";
import { hold, onPush } from "#console/app/live.ts";
import { choiceOf, query, setQuery } from "#console/app/router.ts";
import { whyNot } from "#console/app/session.ts";
import { zone } from "#console/app/settings.ts";
import { count, duration, exact, money } from "#console/lib/format.ts";
import { changeOf, csvOf, rowOf, rowsOf, type UsageRow, withGaps } from "#console/lib/usage-rows.ts";
import { ActionButton, Select } from "#console/parts/fields.tsx";
import { PageHead, Pending } from "#console/parts/page.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { useLoaded } from "#console/parts/use.ts";
import type { RpcMethods } from "#generated/clients/typescript/src/rpc.ts";
import { visible } from "#kit/visible.ts";
import { FirstRequest } from "../activity/first-request.tsx";
import { Budgets } from "./budgets.tsx";
import { Plot } from "./plot.tsx";
import "./usage.css";

type GroupBy = NonNullable<NonNullable<RpcMethods["usage.stats"]["params"]>["groupBy"]>;

const DAYS = [
  ["1", "24 hours"],
  ["7", "7 days"],
  ["30", "30 days"],
  ["90", "90 days"],
] as const;
const GROUPS = [
  ["agent", "Agent"],
  ["model", "Model"],
  ["token", "Caller"],
  ["surface", "Surface"],
] as const;

/** Usage by day, and by agent, model, caller or surface. */
function Page() {
  const days = Number(choiceOf(query.value, "days", DAYS) ?? 7);
  const by: GroupBy = choiceOf(query.value, "by", GROUPS) ?? "agent";
  const step = days <= 1 ? "hour" : "day";
  const loaded = useLoaded(async () => {
    const to = Date.now();
    const from = to - days * 86_400_000;
    const read = (start: number, end: number, groupBy: GroupBy) =>
      rpc().usage.stats({ from: new Date(start).toISOString(), to: new Date(end).toISOString(), groupBy });
    const [byTime, byGroup, before] = await Promise.all([
      read(from, to, step),
      read(from, to, by),
      read(2 * from - to, from, "surface"),
    ]);
    const [time, groups] = [withGaps(rowsOf(byTime.groups, true), from, to, step), rowsOf(byGroup.groups, false)];
    return { time, groups, total: rowOf("total", byTime.total), before: rowOf("before", before.total) };
  }, [days, by]);
  const budgets = useBudgets();
  const found = loaded.value.value;
  const isEmpty = found !== undefined && found.total.messages === 0 && found.total.total === 0;
  // The first use turns the command into the numbers.
  useEffect(() => {
    if (!isEmpty) return undefined;
    const release = hold({ gateway: null, deliveries: true });
    const stop = onPush(({ method }) => {
      if (method.startsWith("delivery.")) void loaded.reload();
    });
    return () => [release, stop].forEach((end) => void end());
  }, [isEmpty]);
  const word = GROUPS.find(([one]) => one === by)?.[1] ?? "Agent";
  return (
    <>
      <PageHead title="Usage" of={{ at: loaded.at, reload: () => Promise.all([loaded.reload(), budgets.reload()]) }}>
        <ActionButton
          why={!found || found.groups.length === 0 ? "No usage in this period." : undefined}
          onClick={() => found && download(csvOf(found.groups, by), `usage-by-${by}-${days}-days.csv`)}
        >
          Download CSV
        </ActionButton>
      </PageHead>
      {budgets.list.length > 0 && <Budgets budgets={budgets.list} />}
      <div class="line filters" data-open="true">
        <label class="filter">
          Period <Select value={String(days)} choices={DAYS} choose={(next) => setQuery({ days: next })} />
        </label>
        <label class="filter">
          Group by <Select value={by} choices={GROUPS} choose={(next) => setQuery({ by: next })} />
        </label>
      </div>
      <Pending of={loaded} rows={8} />
      {isEmpty && (
        <FirstRequest title="No usage in this period." isLive onSent={() => void loaded.reload()}>
          <p class="muted">Usage is stored per hour for 400 days. Choose a longer period, or send a message.</p>
        </FirstRequest>
      )}
      {found && !isEmpty && (
        <>
          <Totals {...found} days={days} />
          <section class="section" aria-label={`Tokens by ${step}`}>
            <h2>Tokens by {step}</h2>
            <Plot rows={found.time} step={step} />
          </section>
          <section class="section">
            <h2>By {word.toLowerCase()}</h2>
            <Table
              label={`Usage by ${word.toLowerCase()}`}
              rows={found.groups}
              columns={columnsOf(word, found.groups)}
              keyOf={({ key }) => key}
            />
          </section>
          <details class="section">
            <summary>Table by {step}</summary>
            <Table
              label={`Usage by ${step}`}
              rows={found.time.filter(({ total, messages }) => total > 0 || messages > 0)}
              columns={columnsOf(step === "hour" ? "Hour" : "Day", found.time)}
              keyOf={({ key }) => key}
            />
          </details>
        </>
      )}
    </>
  );
}

/** The budgets, read again when one is nearly used up, used up or raised. */
function useBudgets() {
  const loaded = useLoaded(async (signal) => {
    if (whyNot("budget.list")) return [];
    return (await rpc().budget.list({}, { signal })).budgets;
  });
  useEffect(
    () =>
      onPush(({ method }) => {
        if (method.startsWith("budget.")) void loaded.reload();
      }),
    [],
  );
  return { list: loaded.value.value ?? [], reload: loaded.reload };
}

type TotalsOf = { total: UsageRow; before: UsageRow; days: number };

/** The sums of the span, each with its change from the span before. */
function Totals({ total, before, days }: TotalsOf) {
  const change = (pick: (row: UsageRow) => number | null | undefined) =>
    changeOf(pick(total) ?? 0, pick(before) ?? undefined);
  const facts = [
    ["Messages", count(total.messages), change(({ messages }) => messages)],
    ["Turns completed", count(total.completed), change(({ completed }) => completed)],
    total.failed > 0 && ["Turns failed", count(total.failed), change(({ failed }) => failed)],
    ["Tokens in", count(total.input), change(({ input }) => input)],
    ["Tokens out", count(total.output), change(({ output }) => output)],
    total.cost !== undefined && [
      "Cost (in the currency of your prices)",
      money(total.cost),
      change(({ cost }) => cost),
    ],
    total.latencyMs !== null && ["Mean duration", duration(total.latencyMs), change(({ latencyMs }) => latencyMs)],
  ] as const;
  const span = days === 1 ? "24 hours" : `${days} days`;
  return (
    <dl class="line totals">
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt class="muted">{fact[0]}</dt>
              <dd>
                {fact[1]} {fact[2] && <small title={`Compared with the previous ${span}`}>{fact[2]}</small>}
              </dd>
            </div>
          ),
      )}
    </dl>
  );
}

function columnsOf(word: string, rows: readonly UsageRow[]): Column<UsageRow>[] {
  const isTime = word === "Day" || word === "Hour";
  const has = (name: "failed" | "cancelled" | "cost") => rows.some((row) => (row[name] ?? 0) > 0);
  const number = (name: string, pick: (row: UsageRow) => string | undefined, drop?: 1 | 2 | 3): Column<UsageRow> => ({
    name,
    ...(drop && { drop }),
    narrow: SECOND.has(name) ? "second" : "none",
    width: "88px",
    align: "end",
    cell: (row) => (
      <>
        {pick(row) ?? <span class="faint">–</span>}
        <span class="narrow-word"> {name.toLowerCase()}</span>
      </>
    ),
  });
  return [
    {
      name: word,
      narrow: "first",
      cell: ({ key }) => (isTime ? exact(Date.parse(key), zone.value === "utc") : key || "unknown"),
    },
    number("Messages", ({ messages }) => count(messages)),
    number("Completed", ({ completed }) => count(completed), 2),
    ...(has("failed") ? [number("Failed", ({ failed }) => count(failed))] : []),
    ...(has("cancelled") ? [number("Cancelled", ({ cancelled }) => count(cancelled), 2)] : []),
    number("Tokens in", ({ input }) => count(input), 1),
    number("Tokens out", ({ output }) => count(output), 1),
    number("Tokens", ({ total }) => count(total)),
    ...(has("cost") ? [number("Cost", ({ cost }) => cost?.toFixed(4), 3)] : []),
    number("Mean duration", ({ latencyMs }) => (latencyMs === null ? undefined : duration(latencyMs)), 2),
  ];
}

/** The numbers that a narrow row has, too. */
const SECOND: ReadonlySet<string> = new Set(["Messages", "Failed", "Tokens", "Cost"]);

function download(text: string, name: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text.split("\r\n").map(visible).join("\r\n")], { type: "text/csv" }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export default Page;
