import { setTimeout as sleep } from "node:timers/promises";
import { modelFlaw } from "./check-mappings.ts";
import type { Config } from "./config.ts";
import { applyReload, type Difference, diffConfig } from "./diff.ts";
import { valuesAfter } from "./effective.ts";
import { tracesOf } from "./files.ts";
import type { LoadedConfig } from "./load.ts";
import { ConfigError, type ConfigProblem, dotted } from "./problems.ts";

export type Reload =
  | ({ reloaded: true; warnings: readonly string[]; problems: readonly [] } & Difference)
  | { reloaded: false; changed: []; needsRestart: []; warnings: readonly []; problems: readonly ConfigProblem[] };

/** The cause of a reload: a changed file, SIGHUP, or a reload method. */
export type ReloadCause = "file" | "signal" | "rpc";

/** The configuration in force, as an operator sees it. */
export type ConfigState = Pick<LoadedConfig, "file" | "values" | "loadedAt"> & {
  /** The last reload, applied or refused. */
  lastReload: (Omit<Reload, "warnings"> & { at: number; cause: ReloadCause }) | undefined;
};

export type ConfigWatch = {
  readonly state: ConfigState;
  /** The configuration in force. */
  readonly config: Config;
  /**
   * Reads everything again, for SIGHUP and the reload methods. With an agent's name, only the configuration of that agent
   * is applied. Does not throw for an invalid file: the last valid configuration stays in force.
   */
  reload(cause: "signal" | "rpc", agent?: string): Promise<Reload>;
};

type WatchOptions = {
  running: LoadedConfig;
  load: () => Promise<LoadedConfig>;
  /** Applies the whole configuration in one step. Called only if something has changed; never throws. */
  onChange: (config: Config, reload: Reload & { reloaded: true }, cause: ReloadCause) => void;
  /** Called if a reload on request has found no change; never throws. */
  onUnchanged?: () => void;
  /** Called once for each write of an invalid file. */
  onInvalid: (error: ConfigError, cause: ReloadCause) => void;
  /** Stops watching. */
  signal: AbortSignal;
  /** The interval between two polls. A changed file is read when the next poll finds it unchanged, because editors write in several steps. */
  pollMs?: number;
};

/** Keeps the configuration up to date with its file. The last valid one stays in force. */
export function watchConfig(options: WatchOptions): ConfigWatch {
  const { running, load, onChange, onUnchanged, onInvalid, signal, pollMs = 400 } = options;
  let { config, files, values, loadedAt } = running;
  let lastReload: ConfigState["lastReload"];
  /** The fingerprints of the files at the last read, valid or not. */
  let seen = textOfTraces(files);
  let queue: Promise<unknown> = Promise.resolve();

  void watchFiles();
  return {
    get config() {
      return config;
    },
    get state() {
      return { file: running.file, values, loadedAt, lastReload };
    },
    reload,
  };

  /** Reloads run one at a time, in order; each reads the file again. */
  function reload(cause: ReloadCause, agent?: string): Promise<Reload> {
    const result = queue.then(async () => {
      const { warnings, ...outcome } = await readAgain(cause, agent);
      lastReload = { at: Date.now(), cause, ...outcome };
      return { ...outcome, warnings } as Reload;
    });
    queue = result.catch(() => {});
    return result;
  }

  async function readAgain(cause: ReloadCause, agent: string | undefined): Promise<Reload> {
    // A try-out has no file to read, and would only get new secrets.
    if (running.file === null) return { reloaded: true, changed: [], needsRestart: [], warnings: [], problems: [] };
    const before = textOfTraces(await tracesOf(Object.keys(files)));
    try {
      const loaded = await load();
      if (agent === undefined) {
        ({ files } = loaded);
        seen = textOfTraces(files);
      }
      const reload = apply(loaded, agent === undefined ? loaded.config : withAgent(config, loaded, agent), cause);
      values = valuesAfter(
        values,
        loaded.values,
        reload.needsRestart,
        agent === undefined ? undefined : { name: agent, all: Object.keys(loaded.config.agents) },
      );
      ({ loadedAt } = loaded);
      return reload;
    } catch (error) {
      seen = before;
      const refused = error instanceof ConfigError ? error : unreadable(running.file, error);
      onInvalid(refused, cause);
      return { reloaded: false, changed: [], needsRestart: [], warnings: [], problems: refused.problems };
    }
  }

  function apply({ warnings }: LoadedConfig, next: Config, cause: ReloadCause): Reload {
    const difference = diffConfig(config, next);
    const reload = { reloaded: true, ...difference, warnings, problems: [] } as const;
    if (difference.changed.length > 0) config = applyReload(config, next);
    if (difference.changed.length + difference.needsRestart.length > 0) onChange(config, reload, cause);
    else if (cause !== "file") onUnchanged?.();
    return reload;
  }

  /** Polls the files: notifications do not work for network files and links, and would be sent for each write to a busy folder. */
  async function watchFiles(): Promise<void> {
    let before = seen;
    while (!signal.aborted) {
      await sleep(pollMs, undefined, { ref: false });
      const now = textOfTraces(await tracesOf(Object.keys(files)));
      if (now === before && now !== seen && !signal.aborted) await reload("file");
      before = now;
    }
  }
}

/** Converts an unexpected error, which must not stop the watching or the gateway. */
function unreadable(file: string, error: unknown): ConfigError {
  return new ConfigError([{ file, line: null, column: null, key: "", message: `could not be read: ${String(error)}` }]);
}

/** The configuration in force, with the part of one agent from the file. */
function withAgent(running: Config, { config, file }: LoadedConfig, name: string): Config {
  const agent = config.agents[name];
  if (agent === undefined) {
    const message = "is no longer in the file: system.reload removes it.";
    throw new ConfigError([{ file, line: null, column: null, key: dotted(["agents", name]), message }]);
  }
  const lost = [
    ...Object.values(agent.modelTable).flatMap(({ provider }) =>
      running.providers[provider] ? [] : `providers.${provider}`,
    ),
    ...agent.tools.map(serverOf).flatMap((server) => (running.tools[server] ? [] : `tools.${server}`)),
  ][0];
  if (lost !== undefined) {
    const message = "is new in the file: system.reload adds it, with the agents that use it.";
    throw new ConfigError([{ file, line: null, column: null, key: lost, message }]);
  }
  for (const [mapping, { agent: whose, model }] of Object.entries(running.webhooks.mappings)) {
    const flaw = whose === name ? modelFlaw(name, agent, model) : undefined;
    if (flaw === undefined) continue;
    const message = `${flaw} The file may have changed since then: system.reload applies both.`;
    const key = dotted(["webhooks", "mappings", mapping, "model"]);
    throw new ConfigError([{ file, line: null, column: null, key, message }]);
  }
  return Object.freeze({ ...running, agents: Object.freeze({ ...running.agents, [name]: agent }) });
}

/** The server of a tool that is written as `server/tool`. */
function serverOf(tool: string): string {
  return tool.slice(0, tool.indexOf("/"));
}

function textOfTraces(traces: Readonly<Record<string, string>>): string {
  return JSON.stringify(traces);
}
