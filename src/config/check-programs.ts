import { resolve as absolute, dirname } from "node:path";
import type { Built, Findings } from "./check.ts";
import type { CheckedConfig } from "./conform.ts";
import type { Fault } from "./problems.ts";

/** What answers for an agent, and its tools, are there: who learns it from the first turn that fails learns it too late. Paths begin at the file's folder. */
export function checkPrograms(config: CheckedConfig, file: string | null, { programFlaw }: Built): Findings {
  const faults: Fault[] = [];
  const from = file === null ? "." : dirname(file);
  const check = (path: string[], program: { run: readonly string[]; cwd?: string; env: Record<string, string> }) => {
    const flaw = programFlaw?.({ ...program, cwd: absolute(from, program.cwd ?? ".") });
    if (flaw) faults.push({ path: [...path, flaw.at], on: "value", message: `${flaw.message}.` });
  };
  for (const [name, agent] of Object.entries(config.agents)) {
    const { backend } = agent;
    if (backend !== "command" && backend !== "acp") continue;
    const program = agent[backend];
    if (program) check(["agents", name, backend], program);
  }
  for (const [name, server] of Object.entries(config.tools)) {
    if (server.type === "stdio") check(["tools", name], server);
  }
  return { faults, warnings: [] };
}
