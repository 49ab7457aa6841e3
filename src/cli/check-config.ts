import { existsSync } from "node:fs";
import { dirname } from "node:path";
import type { Config } from "#config/config.ts";
import { loadConfig } from "#config/load.ts";
import { ConfigError, type ConfigProblem, showProblem } from "#config/problems.ts";
import { BUILT } from "#gateway/gateway.ts";
import { tracingSettingsOf } from "#gateway/tracing-settings.ts";
import { version } from "../version.ts";
import { configFile, withEnvFile } from "./configured.ts";
import { UsageError } from "./failures.ts";
import { count } from "./values.ts";

type CheckedFile = {
  problems: (ConfigProblem & { words: string })[];
  warnings: readonly string[];
  /** One sentence about a configuration without problems. */
  summary: string;
};

/** Reads a configuration as a start would. */
export async function checkConfig(given: string | undefined, env: NodeJS.ProcessEnv): Promise<CheckedFile> {
  const file = configFile(given, env);
  if (!existsSync(file))
    throw new UsageError(
      `${file} does not exist.`,
      given === undefined ? "agent-gateway init writes one here" : "agent-gateway check FILE",
    );
  try {
    const all = withEnvFile(file, env);
    const { config, values, ...loaded } = await loadConfig({ file, env: all, built: BUILT });
    const warnings = [...loaded.warnings, ...(isClosed(config) ? [NO_SECRET] : [])];
    tracingSettingsOf(config, all, version);
    if (config.store.type === "sqlite" && !existsSync(dirname(config.store.path))) {
      const line = values.find(({ path }) => path === "store.path")?.line ?? null;
      const message = `is in a folder that does not exist: mkdir -p ${dirname(config.store.path)}`;
      const problem = { file, line, column: null, key: "store.path", message };
      return { problems: [{ ...problem, words: showProblem(problem) }], warnings, summary: "" };
    }
    const agents = Object.keys(config.agents);
    const mappings = Object.keys(config.webhooks.mappings).length;
    const summary = `${file} is valid: ${count(agents.length, "agent")} (${agents.join(", ")}), ${count(mappings, "mapping")}, store ${config.store.type}.`;
    return { problems: [], warnings, summary };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return {
      problems: error.problems.map((problem) => ({ ...problem, words: showProblem(problem) })),
      warnings: [],
      summary: "",
    };
  }
}

const NO_SECRET =
  "Nothing can be called: no surface has a secret. Set gateway.console.token, gateway.rest.auth.keys, gateway.rpc.auth.tokens or webhooks.token.";

function isClosed({ gateway: { rest, rpc, console }, webhooks }: Config): boolean {
  return [rest, rpc, console, webhooks].every(({ enabled }) => !enabled);
}
