import { writeFileSync } from "node:fs";
import { RECORDING, readRecording } from "./workflows/recording.ts";
import { runWorkflows } from "./workflows/run.ts";

// Runs the workflows of the contract on the built gateway, and compares their calls with the recording that the documentation shows. WALKS=renew writes it.
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

const recording = await runWorkflows();
if (recording === undefined) process.exitCode = 1;
else if (process.env.WALKS === "renew") writeFileSync(RECORDING, `${JSON.stringify(recording, null, 2)}\n`);
else if (JSON.stringify(recording) !== JSON.stringify(readRecording())) {
  console.error(`The calls differ from ${RECORDING}. To renew it: WALKS=renew npm run workflows`);
  process.exitCode = 1;
}
