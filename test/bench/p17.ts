import { compare, type Figure, measure, median, unmeasured } from "./figures.ts";
import { whyNoLoad } from "./machine.ts";
import { CONNECTIONS, type LOADS, Nodes, RUN_IN_S, type Taken } from "./nodes.ts";
import type { BenchOptions } from "./options.ts";

const MANY = 3;
/** So many slices of a load in a round: the shorter they are, the less has changed on the machine between those that are compared. */
const SLICES = 4;

type Measured = Record<"one" | "many" | "third", Taken[]>;

/** P17: wakes that one gateway and three take in on one PostgreSQL. */
export const measureNodeWakes = (options: BenchOptions): Promise<Figure[]> => measureNodes("wakes", options);

/** The same of turns; by itself, so that neither takes the other's figures along where it has none. */
export const measureNodeTurns = (options: BenchOptions): Promise<Figure[]> => measureNodes("turns", options);

const measureNodes = async (
  kind: keyof typeof LOADS,
  { rounds, seconds, short, say }: BenchOptions,
): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return [unmeasured("P17", `accepted ${kind} on PostgreSQL`, why)];
  say(`P17: ${kind}, warming up`);
  await using one = await Nodes.start(kind, 1);
  await using many = await Nodes.start(kind, MANY);
  // Turns are taken in faster than they run: of more callers than the one's the queue would only grow.
  const most = kind === "wakes" ? CONNECTIONS : CONNECTIONS / MANY;
  for (let turn = 0; turn < 2; turn++) {
    await many.warmUp(most, short);
    await one.warmUp(CONNECTIONS, short);
  }
  const found: Measured = { one: [], many: [], third: [] };
  const long = Math.ceil((seconds * 2) / SLICES);
  const loads = [
    async () => found.one.push(await one.load(CONNECTIONS, long)),
    async () => most === CONNECTIONS && found.many.push(await many.load(CONNECTIONS, long)),
    async () => found.third.push(await many.load(CONNECTIONS / MANY, long)),
  ];
  for (let round = 0; round < rounds; round++) {
    say(`P17: ${kind}, round ${round + 1} of ${rounds}`);
    // There and back: what changes with time, as other work on this machine does, is no difference between them.
    for (let slice = 0; slice < SLICES; slice += 2) for (const load of [...loads, ...loads.toReversed()]) await load();
  }
  return figuresOf(kind, found);
};

/** `many`: each gateway has as many callers as the one; `third`: they share its callers. */
const figuresOf = (kind: keyof typeof LOADS, { one, many, third }: Measured): Figure[] => {
  const list = (taken: readonly Taken[], pick: (one: Taken) => number) => taken.map(pick);
  const middle = (taken: readonly Taken[], pick: (one: Taken) => number) => median(list(taken, pick));
  const noteOf = (taken: readonly Taken[]) =>
    `CPU a request ${middle(taken, ({ cpu }) => cpu).toFixed(0)} us, and ${middle(taken, (t) => t.databaseCpu).toFixed(0)} us of the database; ` +
    `p99 ${(middle(taken, ({ p99 }) => p99) / 1_000).toFixed(1)} ms; each load counted after ${RUN_IN_S} s of the same; ` +
    `others took at most ${(Math.max(...list(taken, ({ disturbed }) => disturbed)) * 100).toFixed(0)} % of the core`;
  const rate = ({ rate }: Taken) => rate;
  const cpu = (taken: Taken) => taken.cpu;
  const shared: Figure[] = [
    compare(list(third, rate), list(one, rate), {
      gate: "P17",
      figure: `${kind}, ${MANY} gateways that share one's core and its ${CONNECTIONS} callers`,
      unit: "a second",
      note: noteOf(third),
    }),
    compare(list(third, cpu), list(one, cpu), {
      gate: "P17",
      figure: `CPU a request of ${kind}, ${MANY} gateways that share one's core and its callers`,
      unit: "us",
    }),
  ];
  const alone = measure(list(one, rate), {
    gate: "P17",
    figure: `${kind} on PostgreSQL, one gateway`,
    unit: "a second",
    ...(kind === "wakes" && { bound: { atLeast: 2_000 } }),
    note: `${noteOf(one)}; the database shares its core with the client`,
  });
  if (many.length === 0) return [alone, ...shared];
  return [
    alone,
    compare(list(many, rate), list(one, rate), {
      gate: "P17",
      figure: `${kind}, ${MANY} gateways that share one's core, ${CONNECTIONS} callers each`,
      unit: "a second",
      note: noteOf(many),
    }),
    compare(list(many, cpu), list(one, cpu), {
      gate: "P17",
      figure: `CPU a request of ${kind}, ${MANY} gateways, ${CONNECTIONS} callers each`,
      unit: "us",
      bound: { atMost: 1.5, what: "x one" },
    }),
    ...shared,
  ];
};
