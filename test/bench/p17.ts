import { compare, type Figure, measure, median, unmeasured } from "./figures.ts";
import { whyNoLoad } from "./machine.ts";
import { type LOADS, loadNodes, type Taken } from "./nodes.ts";
import type { BenchOptions } from "./options.ts";

const MANY = 3;

/** P17: wakes, and turns, that one gateway and three take in on one PostgreSQL. */
export const measureNodes = async ({ rounds, seconds, say }: BenchOptions): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return [unmeasured("P17", "accepted wakes on PostgreSQL", why)];
  const figures: Figure[] = [];
  for (const kind of ["wakes", "turns"] as const) {
    const one: Taken[] = [];
    const many: Taken[] = [];
    for (let round = 0; round < rounds; round++) {
      say(`P17: ${kind}, round ${round + 1} of ${rounds}`);
      one.push(await loadNodes(kind, 1, seconds, 10 * round));
      many.push(await loadNodes(kind, MANY, seconds, 10 * round));
    }
    figures.push(...figuresOf(kind, one, many));
  }
  return figures;
};

const figuresOf = (kind: keyof typeof LOADS, one: readonly Taken[], many: readonly Taken[]): Figure[] => {
  const list = (taken: readonly Taken[], pick: (one: Taken) => number) => taken.map(pick);
  const middle = (taken: readonly Taken[], pick: (one: Taken) => number) => median(list(taken, pick));
  const noteOf = (taken: readonly Taken[]) =>
    `CPU a request ${middle(taken, ({ cpu }) => cpu).toFixed(0)} us, and ${middle(taken, (t) => t.databaseCpu).toFixed(0)} us of the database; ` +
    `p99 ${(middle(taken, ({ p99 }) => p99) / 1_000).toFixed(1)} ms`;
  const rate = ({ rate }: Taken) => rate;
  const cpu = (taken: Taken) => taken.cpu;
  const isGate = kind === "wakes";
  return [
    measure(list(one, rate), {
      gate: "P17",
      figure: `${kind} on PostgreSQL, one gateway`,
      unit: "a second",
      ...(isGate && { bound: { atLeast: 2_000 } }),
      note: `${noteOf(one)}; the database shares its core with the client`,
    }),
    compare(list(many, rate), list(one, rate), {
      gate: "P17",
      figure: `${kind}, ${MANY} gateways that share one's core`,
      unit: "a second",
      note: noteOf(many),
    }),
    compare(list(many, cpu), list(one, cpu), {
      gate: "P17",
      figure: `CPU a request of ${kind}, ${MANY} gateways`,
      unit: "us",
      ...(isGate && { bound: { atMost: 1.15, what: "x one" } }),
    }),
  ];
};
