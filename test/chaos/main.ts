import { type Proof, runProofs } from "#test/crash/command.ts";
import { runChaos } from "./run.ts";

const ABOUT = `Random faults, put together, on real gateways under load: killed, paused, told to stop; clocks that jump; disks and databases that fail;
clients that are slow, hostile, or gone. In the end it looks whether every promise was kept.`;

const PROOFS = (["sqlite", "postgres"] as const).map(
  (engine): Proof => ({
    name: engine,
    words: `random faults on ${engine}`,
    async run({ minutes = 1, ...options }) {
      const { faults, skipped, ...report } = await runChaos({ lanes: 12, ...options, engine, seconds: minutes * 60 });
      const done = Object.entries(faults).map(([name, count]) => `${name} ${count}`);
      return { ...report, more: [`  faults: ${done.join(", ")}`, ...skipped.map((words) => `  skipped ${words}`)] };
    },
  }),
);

await runProofs("test:chaos", ABOUT, PROOFS);
