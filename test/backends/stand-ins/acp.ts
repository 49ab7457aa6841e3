import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type AcpSettings, createAcpBackend } from "#backends/acp/acp.ts";
import { systemClock } from "#kit/clock.ts";

const folder = import.meta.dirname;
export function agentProgram(begin = "well"): string[] {
  return [process.execPath, join(folder, "acp-agent.mjs"), begin];
}

/** A backend of the stand-in, closed after the test. */
export function acpOf(begin = "well", settings: Partial<AcpSettings> = {}) {
  const said: string[] = [];
  const backend = createAcpBackend({
    run: agentProgram(begin),
    cwd: folder,
    env: {},
    agent: "main",
    models: [],
    version: "1.2.3",
    clock: systemClock,
    permissions: "deny",
    idle: 60_000,
    processes: 4,
    connectMs: 10_000,
    silenceMs: 60_000,
    events: { programSaid: ({ line }) => void said.push(line) },
    ...settings,
  });
  onTestFinished(async () => await backend.close?.());
  return { ...backend, said };
}
