import { existsSync } from "node:fs";
import { loadConfig } from "#config/load.ts";
import { ConfigError, type ConfigProblem, showProblem } from "#config/problems.ts";
import { BUILT } from "#gateway/gateway.ts";
import { tracingSettingsOf } from "#gateway/tracing-settings.ts";
import { version } from "../version.ts";
import { configFile, withEnvFile } from "./configured.ts";
import { UsageError } from "./failures.ts";

type CheckedFile = {
  problems: (ConfigProblem & { words: string })[];
  warnings: readonly string[];
  /** One sentence about a configuration without problems. */
  summary: string;
};

/** Reads a configuration as a start would. */
export const checkConfig = async (given: string | undefined, env: NodeJS.ProcessEnv): Promise<CheckedFile> => {
  const file = configFile(given, env);
  if (!existsSync(file))
    throw new UsageError(
      `${file} is not there.`,
      given === undefined ? "agent-gateway init writes one here" : "agent-gateway check FILE",
    );
  try {
    const all = withEnvFile(file, env);
    const { config, warnings } = await loadConfig({ file, env: all, built: BUILT });
    tracingSettingsOf(config, all, version);
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
};

const count = (many: number, noun: string): string => `${many} ${noun}${many === 1 ? "" : "s"}`;
