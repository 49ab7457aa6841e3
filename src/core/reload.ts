import type { AgentReload, Problems, SystemReload } from "#generated/rpc-types.ts";
import type { GatewayNews } from "#store/store.ts";
import type { Core } from "./core.ts";
import { changedSkills, hasSkill } from "./skills/skills.ts";

/** The request for a reload: SIGHUP, or a method of RPC. */
export type ReloadRequest = "signal" | "rpc";

/**
 * Reads the configuration again; with an agent's name, applies only that agent's part. Its result is in force when it
 * resolves. It never throws for an invalid file.
 */
export type ReadConfig = (cause: ReloadRequest, agent?: string) => Promise<ConfigReload>;

export type ConfigReload = {
  reloaded: boolean;
  changed: readonly string[];
  needsRestart: readonly string[];
  problems: readonly (Omit<Problems[number], "file"> & { file: string | null })[];
};

/** The changed keys of a reload. Other skills have the key `skills`, also if no key of the configuration is different. */
export function withSkills(changed: readonly string[], isDifferent: boolean): string[] {
  return isDifferent && !changed.includes(SKILLS) ? [...changed, SKILLS] : [...changed];
}
const SKILLS = "skills";

/** Reads the configuration and the skills again on request. Reports the differences on the gateway's stream. */
export function createReloads(core: Core, readConfig: ReadConfig) {
  const { agents, skills, reloadSkills, gatewayStream: stream, events } = core;
  const read = async (cause: ReloadRequest, agent?: string) => {
    const before = skills.list();
    const { reloaded, changed, needsRestart, problems } = await readConfig(cause, agent);
    const invalid = await reloadSkills();
    const ids = changedSkills(before, skills.list());
    // A different configuration is logged where it is applied, with its skills.
    const isLogged = changed.length + needsRestart.length > 0;
    if (!isLogged && (ids.length > 0 || (reloaded && cause === "signal")))
      events.configReloaded({ cause, changed: withSkills([], ids.length > 0) });
    const isDifferent = agent === undefined ? ids.length > 0 : ids.some((id) => hasSkill(agents.get(agent), id));
    return {
      reloaded,
      changed: withSkills(changed, isDifferent),
      needsRestart: [...needsRestart],
      problems: problems.map((problem) => ({ ...problem, file: nameOf(problem.file) })),
      invalid,
    };
  };

  const tell = async (news: GatewayNews): Promise<void> => {
    await stream.append(news).catch((error: unknown) => events.storeFailed({ operation: "appendGatewayEntry", error }));
  };
  const notifySystem = async ({ changed, needsRestart }: Pick<SystemReload, "changed" | "needsRestart">) => {
    if (changed.length + needsRestart.length > 0) await tell({ name: "system.reloaded", changed, needsRestart });
  };

  return {
    async system(cause: ReloadRequest): Promise<SystemReload> {
      const { invalid: _, ...reload } = await read(cause);
      await notifySystem(reload);
      return reload;
    },
    /** Throws `agent-not-found`. */
    async agent(agentName: string): Promise<AgentReload> {
      agents.get(agentName);
      const { reloaded, changed, problems, invalid } = await read("rpc", agentName);
      if (changed.length > 0) await tell({ name: "agent.reloaded", agentName, changed });
      const agent = agents.get(agentName);
      const loaded = skills.ids().filter((id) => hasSkill(agent, id));
      const skipped = invalid.map(({ dir, reason }) => ({ folder: lastOf(dir), reason }));
      return { agentName, reloaded, changed, problems, skills: { loaded, skipped } };
    },
    /** Reports a changed file, which was applied without a request. */
    notify: notifySystem,
  };
}

export type Reloads = ReturnType<typeof createReloads>;

/** A file or folder without its path, which callers must not learn. */
function lastOf(path: string): string {
  return path.split(/[\\/]/).filter(Boolean).at(-1) ?? path;
}
export function nameOf(file: string | null): string | null {
  return file === null ? null : lastOf(file);
}
