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

/** Why it was read again: somebody changed a file, sent SIGHUP, or called a reload method. */
export type ReloadCause = "file" | "signal" | "rpc";

/** The configuration in force, as an operator sees it. */
export type ConfigState = Pick<LoadedConfig, "file" | "values" | "loadedAt"> & {
  /** The last time that it was read again, taken or refused. */
  lastReload: (Omit<Reload, "warnings"> & { at: number; cause: ReloadCause }) | undefined;
};

export type ConfigWatch = {
  readonly state: ConfigState;
  /** The configuration in force. */
  readonly config: Config;
  /**
   * Reads everything again, for SIGHUP and the reload methods; with an agent's name, only what the file says of that agent
   * is taken over. Never throws for a bad file: the last good one goes on.
   */
  reload(cause: "signal" | "rpc", agent?: string): Promise<Reload>;
};

type WatchOptions = {
  running: LoadedConfig;
  load: () => Promise<LoadedConfig>;
  /** Takes the whole configuration over, in one step. Called only if something is different; never throws. */
  onChange: (config: Config, reload: Reload & { reloaded: true }, cause: ReloadCause) => void;
  /** A file that is not valid, once for each time that it was written. */
  onInvalid: (error: ConfigError, cause: ReloadCause) => void;
  /** Ends the watching. */
  signal: AbortSignal;
  /** The pause between two looks at the files. One that changed is read when a second look finds it the same: editors write in several steps. */
  pollMs?: number;
};

/** Keeps the configuration up to date with its file, and the last good one in force. */
export function watchConfig({ running, load, onChange, onInvalid, signal, pollMs = 400 }: WatchOptions): ConfigWatch {
  let { config, files, values, loadedAt } = running;
  let lastReload: ConfigState["lastReload"];
  /** The files as they were when they were last read, well or not. */
  let seen = tell(files);
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

  /** One at a time, in the order of asking; each reads the file anew. */
  function reload(cause: ReloadCause, agent?: string): Promise<Reload> {
    const result = queue.then(async () => {
      const { warnings, ...came } = await readAgain(cause, agent);
      lastReload = { at: Date.now(), cause, ...came };
      return { ...came, warnings } as Reload;
    });
    queue = result.catch(() => {});
    return result;
  }

  async function readAgain(cause: ReloadCause, agent: string | undefined): Promise<Reload> {
    // Without a file there is nothing to read again; a try-out would only get other secrets.
    if (running.file === null) return { reloaded: true, changed: [], needsRestart: [], warnings: [], problems: [] };
    const before = tell(await tracesOf(Object.keys(files)));
    try {
      const loaded = await load();
      if (agent === undefined) {
        ({ files } = loaded);
        seen = tell(files);
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
    return reload;
  }

  /** Looks by itself: no system tells of files on a network or behind a link; notices would cost each write of a busy folder. */
  async function watchFiles(): Promise<void> {
    let before = seen;
    while (!signal.aborted) {
      await sleep(pollMs, undefined, { ref: false });
      const now = tell(await tracesOf(Object.keys(files)));
      if (now === before && now !== seen && !signal.aborted) await reload("file");
      before = now;
    }
  }
}

/** An unforeseen error must not end the watching, nor the gateway. */
function unreadable(file: string, error: unknown): ConfigError {
  return new ConfigError([{ file, line: null, column: null, key: "", message: `could not be read: ${String(error)}` }]);
}

/** The configuration in force, with one agent's part as it is now in the file. */
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

function tell(traces: Readonly<Record<string, string>>): string {
  return JSON.stringify(traces);
}
