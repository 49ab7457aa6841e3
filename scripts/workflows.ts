import { runWorkflows } from "./workflows/run.ts";

// Runs the workflows of the contract on the built gateway.
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));
process.exitCode = await runWorkflows();
