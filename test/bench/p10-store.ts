import { buildServer } from "./builds.ts";
import { runProgram } from "./children.ts";
import { type Figure, measure } from "./figures.ts";
import { pinned, SERVER_CORE } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import type { Weight } from "./servers/store-weight.ts";

const TURNS_PER_SESSION = 500;

/** P10 at the store: what a message of 100 bytes weighs, with its turn, and what a session weighs beside its turns. */
export const measureStoreWeight = async ({ short, say }: BenchOptions): Promise<Figure[]> => {
  const messages = short ? 100_000 : 1_000_000;
  const sessions = short ? 20_000 : 200_000;
  const file = await buildServer("store-weight");
  const weigh = async (turns: number, count: number): Promise<Weight> => {
    const [command, args] = pinned(SERVER_CORE, process.execPath, [
      "--expose-gc",
      "--max-old-space-size=8192",
      file,
      JSON.stringify({ turns, sessions: count }),
    ]);
    return JSON.parse(await runProgram(command, args, { timeoutMs: 180_000 })) as Weight;
  };

  const turns = messages / 2;
  say(`P10: ${messages} messages in the store`);
  const long = await weigh(turns, turns / TURNS_PER_SESSION);
  say(`P10: ${sessions} sessions in the store`);
  const wide = await weigh(sessions, sessions);
  const perTurn = long.bytes / turns;
  const perSession = wide.bytes / sessions - perTurn;
  const counted = (weight: Weight) => `the store counts ${Math.round((weight.counted / weight.bytes) * 100)} % of it`;
  return [
    measure([long.bytes / messages], {
      gate: "P10",
      figure: "message of 100 bytes, all its turn holds",
      unit: "bytes",
      bound: { atMost: 1_024 },
      note: `${messages} messages, a turn of two is ${Math.round(perTurn)} bytes; ${counted(long)}; filled in ${Math.round(long.fillMs)} ms`,
    }),
    measure([perSession], {
      gate: "P10",
      figure: "session, beside its turns",
      unit: "bytes",
      bound: { atMost: 2_048 },
      note: `${sessions} sessions of one turn, less the turn of above; together ${Math.round(wide.bytes / sessions)} bytes, ${counted(wide)}`,
    }),
  ];
};
