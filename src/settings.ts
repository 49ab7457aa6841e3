import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import type { Backend } from "#backends/backend.ts";
import { createEchoBackend } from "#backends/echo.ts";
import type { AgentConfig, Config } from "#config/config.ts";
import type { CoreSettings } from "#core/core.ts";

/** Makes the backend of one agent. */
export type MakeBackend = (name: string, agent: AgentConfig) => Backend;

export const makeBackend: MakeBackend = (_name, agent) => createEchoBackend(agent.echo);

/** What the core takes from the configuration. */
export const coreSettingsOf = (config: Config, make: MakeBackend, file: string | null): CoreSettings => ({
  agents: Object.entries(config.agents).map(([name, agent]) => ({
    name,
    description: agent.description,
    instructions: agent.instructions || undefined,
    model: agent.model,
    skills: agent.skills,
    concurrency: agent.concurrency,
    deadlineMs: agent.deadline,
    heartbeatMs: agent.heartbeat.every,
    backend: make(name, agent),
  })),
  defaultAgent: config.gateway.defaultAgent,
  keys: config.gateway.rest.auth.keys.map(({ name, hash, scopes }) => {
    return { name, hash: Buffer.from(hash, "hex"), prefix: undefined, scopes };
  }),
  /** Looked up each time that skills are read: the default folder may have been made meanwhile. */
  get skillDirs() {
    return skillDirsOf(config, file);
  },
  concurrency: config.gateway.concurrency,
  limits: { store: config.limits, recorder: config.recorder },
  retentionMs: config.sessions.retention,
  webhookRetentionMs: config.sessions.webhookRetention,
  compactAt: config.sessions.compactAt,
  tokensSince: config.webhooks.token.flatMap(({ since }) => since ?? []),
});

/** The folders to read skills from. The default one need not be there; one that somebody wrote down must. */
const skillDirsOf = ({ skills }: Config, file: string | null): string[] => {
  const byDefault = resolve(file === null ? "." : dirname(file), "skills");
  return skills.dirs.filter((dir) => dir !== byDefault || existsSync(dir));
};
