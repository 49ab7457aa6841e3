import type { Lease } from "#store/rules/records.ts";
import type { Usage } from "#store/store.ts";
import { decodeOptional, encodeOptional } from "../texts.ts";
import { number, optional, type Row } from "./sql.ts";
import type { Column } from "./table.ts";

/** Fields by the types of their columns. An `escaped` field is text from callers, encoded so that PostgreSQL accepts it. */
type Kinds<T> = Partial<
  Record<
    "text" | "escaped" | "bigint" | "integer" | "boolean" | "json" | "double precision",
    readonly (keyof T & string)[]
  >
>;

function snakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Maps fields to columns of the same name in snake case, or of the name in `renamed`. An undefined field is stored as null. */
export function fields<T extends object>(kinds: Kinds<T>, renamed: { readonly [Name in keyof T]?: string } = {}) {
  const list = Object.entries<readonly (keyof T & string)[] | undefined>(kinds).flatMap(([kind, names = []]) =>
    names.map((name) => ({ name, kind, column: renamed[name] ?? snakeCase(name) })),
  );
  return {
    columns: <R>(of: (record: R) => T): Column<R>[] =>
      list.map(({ name, column, kind }) => {
        if (kind !== "escaped") return [column, kind, (record) => of(record)[name]];
        return [column, "text", (record) => encodeOptional(of(record)[name] as string | undefined)];
      }),
    read: (row: Row): T => {
      const record: Partial<Record<keyof T, unknown>> = {};
      for (const { name, column, kind } of list) {
        const value = row[column] ?? undefined;
        record[name] = kind === "escaped" ? decodeOptional(value as string | undefined) : value;
      }
      return record as T;
    },
  };
}

export function leaseColumns<R>(of: (record: R) => Lease | undefined): Column<R>[] {
  return [
    ["node", "text", (record) => of(record)?.node],
    ["lease_ends", "double precision", (record) => of(record)?.endsAt],
  ];
}

export function readLease(row: Row): Lease {
  return { node: row.node as string, endsAt: number(row.lease_ends) };
}

/** Cached tokens, reasoning tokens, and the cost. */
type More = readonly [cached: number, reasoning: number, cost: number];

export function moreOf(usage: Usage | undefined): More | undefined {
  return usage?.more && [usage.more.cached, usage.more.reasoning, usage.more.cost];
}

export function usageOf(input: unknown, output: unknown, more: unknown): Usage {
  const usage = { input: number(input), output: optional(output) ?? 0 };
  if (!more) return usage;
  const [cached, reasoning, cost] = more as More;
  return { ...usage, more: { cached, reasoning, cost } };
}
