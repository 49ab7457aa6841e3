import { compareWithBare } from "./against-bare.ts";
import { startBare } from "./bare.ts";
import { wakeCall } from "./calls.ts";
import { EVENTS } from "./events.ts";
import { type Figure, unmeasured } from "./figures.ts";
import type { GatewayWish, Started } from "./gateways.ts";
import { runLoad } from "./load.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";

const FIGURE = "POST /hooks/wake, a body of its own each";
export const BEAT = "500ms";

/** Webhooks without a limit, whose events are handed over while they come. */
export const BEATING: GatewayWish = {
  webhooks: { rateLimit: { maxRequests: 0 } },
  agent: { heartbeat: { every: BEAT } },
  limits: { events: 10_000_000 },
};

/** What P2 sends. */
export const wake = ({ url, pid }: Started, seconds: number, seed: number, connections?: number) =>
  runLoad({ url, pid, call: wakeCall(), sessions: 0, seconds, seed, ...(connections && { connections }) });

/** P2: events of other systems, beside a bare server that parses and stringifies as much. */
export const measureWakes = async (options: BenchOptions): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return [unmeasured("P2", FIGURE, why)];
  await using bare = await startBare("bare-http");
  const figure = await compareWithBare({
    ...options,
    gate: "P2",
    figure: FIGURE,
    bound: { atLeast: 0.4, what: "x bare" },
    bare,
    gateway: BEATING,
    work: EVENTS,
    note: `handed over every ${BEAT} meanwhile, and all handled within 2 s of the end`,
    run: wake,
  });
  return [figure];
};
