import { parseArgs } from "node:util";

export type BenchOptions = {
  /** The gates to measure; undefined for all. */
  only: ReadonlySet<string> | undefined;
  /** The duration of one load. */
  seconds: number;
  rounds: number;
  /** A quick check of a few minutes: fewer rounds, smaller stores. Not for publication. */
  short: boolean;
  json: string;
  /** The folder of an existing build; undefined is dist/, which is rebuilt if it is stale. */
  build: string | undefined;
  /** The folder of Portkey's gateway; undefined is here. */
  portkey: string | undefined;
  /** Prints the progress. */
  say: (words: string) => void;
};

export const HELP = `npm run bench -- [options]

  --only P4,P13   only these gates; P16 and P16-SQLITE run for real only when they are named, as each takes 11 minutes
  --seconds N     how long one load lasts (default 6)
  --rounds N      how often each load runs, in turn with what it is compared with (default 3)
  --short         a quick look: one round of 2 s, stores of a tenth, a minute of P16; not to be quoted
  --build DIR     start the built gateway of this folder as it is (default dist, built when it is stale); the full stores of
                  P11, P12 and P15 are built from the sources all the same, and what is installed is what would be packed
  --portkey DIR   where Portkey's gateway is installed (npm install @portkey-ai/gateway), to be compared with in P7 and P8
  --json FILE     where the figures go as JSON (default bench-results/latest.json)
  --help          print this

Ends with 1 when a gate is not held, with 2 when it could not begin.
`;

const DEFAULT_JSON = "bench-results/latest.json";

export function readOptions(args: readonly string[], say: (words: string) => void): BenchOptions | "help" {
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  const options = {
    only: text,
    seconds: text,
    rounds: text,
    short: flag,
    build: text,
    portkey: text,
    json: text,
    help: flag,
  };
  const { values } = parseArgs({ args: [...args], options });
  if (values.help) return "help";
  const only = values.only?.split(",").map((gate) => gate.trim().toUpperCase());
  return {
    only: only && new Set(only),
    seconds: whole("seconds", values.seconds) ?? (values.short ? 2 : 6),
    rounds: whole("rounds", values.rounds) ?? (values.short ? 1 : 3),
    short: values.short,
    json: values.json ?? DEFAULT_JSON,
    build: values.build,
    portkey: values.portkey,
    say,
  };
}

/** With a time limit: everything that this starts must end automatically. */
function whole(name: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  const number = Number(value);
  if (!Number.isInteger(number) || number < 1 || number > 60) throw new Error(`--${name} ${value}: give 1 to 60`);
  return number;
}
