import { resolve as absolute, dirname } from "node:path";
import type { Built, Findings } from "./check.ts";
import type { CheckedConfig } from "./conform.ts";
import type { Fault } from "./problems.ts";

/** What answers for an agent is there: who learns it from the first turn that fails learns it too late. Paths begin at the file's folder. */
export function checkPrograms(config: CheckedConfig, file: string | null, { programFlaw }: Built): Findings {
  const faults: Fault[] = [];
  const from = file === null ? "." : dirname(file);
  for (const [name, agent] of Object.entries(config.agents)) {
    const { backend } = agent;
    if (backend !== "command" && backend !== "acp") continue;
    const program = agent[backend];
    const flaw = program && programFlaw?.({ ...program, cwd: absolute(from, program.cwd ?? ".") });
    if (flaw) faults.push({ path: ["agents", name, backend, flaw.at], on: "value", message: `${flaw.message}.` });
  }
  return { faults, warnings: [] };
}
