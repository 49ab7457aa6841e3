import { compareWithBare } from "./against-bare.ts";
import { startBare } from "./bare.ts";
import { messageCall } from "./calls.ts";
import { type Figure, unmeasured } from "./figures.ts";
import { runLoad } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";

const SESSIONS = 1_000;
const FIGURE = "POST /rpc agent.sendMessage, over 1 000 sessions";

/** P1: messages over RPC, beside a bare server that parses and stringifies as much. */
export const measureRpc = async (options: BenchOptions): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return [unmeasured("P1", FIGURE, why)];
  await using bare = await startBare("bare-http");
  const load = { call: messageCall(), sessions: SESSIONS };
  const figure = await compareWithBare({
    ...options,
    gate: "P1",
    figure: FIGURE,
    bound: { atLeast: 0.4, what: "x bare" },
    bare,
    run: ({ url, pid }, seconds, seed) => runLoad({ ...load, url, pid, seconds, seed }),
  });
  return [figure];
};
