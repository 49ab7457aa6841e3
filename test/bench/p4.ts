import { compareWithBare } from "./against-bare.ts";
import { startBare } from "./bare.ts";
import { chatCall } from "./calls.ts";
import { type Figure, unmeasured } from "./figures.ts";
import type { Started } from "./gateways.ts";
import { runLoad } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";

const FIGURE = "POST /api/v1/chat/send";

/** P4: validated chat messages, beside a bare server that parses and stringifies as much. */
export const measureChat = async (options: BenchOptions): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return [unmeasured("P4", FIGURE, why)];
  await using bare = await startBare("bare-http");
  return [
    await measureOver({ ...options, bare, sessions: 0, name: "a session each" }),
    await measureOver({ ...options, bare, sessions: 1_000, name: "over 1 000 sessions" }),
  ];
};

const measureOver = ({ sessions, name, ...wish }: BenchOptions & { bare: Started; sessions: number; name: string }) =>
  compareWithBare({
    ...wish,
    gate: "P4",
    figure: `${FIGURE}, ${name}`,
    bound: { atLeast: 0.15, what: "x bare" },
    run: ({ url, pid }, seconds, seed) => runLoad({ url, pid, call: chatCall(sessions), sessions, seconds, seed }),
  });
