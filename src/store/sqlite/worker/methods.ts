import { compactionMethods } from "./compactions.ts";
import { inboundMethods } from "./inbound-methods.ts";
import { readMethods } from "./reads.ts";
import type { State } from "./state.ts";
import { sweepMethods } from "./sweep.ts";
import { turnMethods } from "./turns.ts";

/** What is worked off in slices: others go on in between. Only reads may; they see what is kept when they come to it. */
export type Slices = Generator<undefined, unknown, undefined>;

/**
 * A call as the worker answers it. It checks everything before it changes anything, so that a refusal (a GatewayError) needs no
 * rollback. `time` is the store's monotonic clock as the call was made.
 */
export type Methods = Record<string, (state: State, args: never, time: number) => unknown>;
type Method = { run: (state: State, args: unknown, time: number) => unknown; writes: boolean };

const table = (all: Methods, writes: boolean): [string, Method][] =>
  Object.entries(all).map(([name, run]) => [name, { run: run as Method["run"], writes }]);

export const methods: Readonly<Record<string, Method>> = Object.fromEntries([
  ...table(turnMethods, true),
  ...table(compactionMethods, true),
  ...table(sweepMethods, true),
  ...table(inboundMethods.write, true),
  ...table(readMethods, false),
  ...table(inboundMethods.read, false),
]);
