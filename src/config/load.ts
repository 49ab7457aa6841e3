import { randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { ConfigFile } from "#generated/config-types.ts";
import { config as conforms } from "#generated/validators/config.js";
import { type Built, checkAgents, checkLimits, checkNames, checkPrograms, checkSkills } from "./check-agents.ts";
import { checkBudgets } from "./check-budgets.ts";
import { checkDoors, checkSurfaces, isLoopback } from "./check-doors.ts";
import { checkEndpoints } from "./check-endpoints.ts";
import { checkMappings } from "./check-mappings.ts";
import { checkSchedules } from "./check-schedules.ts";
import { type CheckedConfig, type Config, type Frozen, listenersOf, resolveConfig } from "./config.ts";
import { type EffectiveValue, effectiveValues, type Override } from "./effective.ts";
import { readCertificates, readInstructions, readSource, tracesOf } from "./files.ts";
import { hiddenValues } from "./hidden-values.ts";
import {
  ConfigError,
  type ConfigProblem,
  createFindings,
  dotted,
  type Fault,
  locate,
  type Source,
  showProblem,
  unwritten,
} from "./problems.ts";
import { resolveReferences } from "./references.ts";
import { checkReferences, checkSecrets } from "./secrets.ts";

export type LoadedConfig = {
  config: Config;
  /** Null after a start without a configuration. */
  file: string | null;
  /** The files that it was read from, including certificates, with their fingerprints. */
  files: Readonly<Record<string, string>>;
  warnings: readonly string[];
  /** Its values without secrets, with their origins, and the time when they were read. */
  values: readonly EffectiveValue[];
  loadedAt: number;
  /** The values that must not be shown, see `hiddenValues`. */
  secrets: readonly string[];
  tryOut: TryOut | null;
};

export type LoadOptions = {
  /** `--config`. Otherwise `$GATEWAY_CONFIG`, then ./gateway.json5 if it exists, then the try-out. */
  file?: string | undefined;
  env: NodeJS.ProcessEnv;
  /** `--host` and `--port`. They override `$GATEWAY_HOST` and `$GATEWAY_PORT`, which override the file. */
  host?: string | undefined;
  port?: number | undefined;
  /** The stores and backends of this build. */
  built: Built;
  /** The folder of gateway.json5, if no file is named. */
  folder?: string;
};

/** Reads the configuration. Throws ConfigError with all errors. The result is immutable. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const usual = join(options.folder ?? ".", "gateway.json5");
  const file = options.file ?? (options.env.GATEWAY_CONFIG || (existsSync(usual) ? usual : undefined));
  if (file === undefined) return await loadTryOut(options);
  const trace = await tracesOf([file]);
  const loaded = await settle(await readSource(file), options);
  return { ...loaded, files: { ...trace, ...loaded.files } };
}

/** Builds a configuration from the written values: fills in references, validates, checks, and converts. */
export async function settle(source: Source, options: LoadOptions): Promise<LoadedConfig> {
  const address = addressFrom(options);
  // Only a file has references to variables. The values of a program are used unchanged.
  const references =
    source.file === null
      ? { value: source.value, faults: [], filled: [] }
      : resolveReferences(source.value, options.env);
  const { checked, faults } = await conform(structuredClone(references.value), source.value);
  // A value with a missing variable is not validated again, so that one mistake gives one message.
  const unresolved = new Set(references.faults.map(({ path }) => dotted(path)));
  const found = [...references.faults, ...faults.filter(({ path }) => !unresolved.has(dotted(path)))];
  refuseIf(source, found, address.problems);

  const findings = createFindings();
  const { tls, files: certificates } = await readCertificates(checked, source.file, findings.refuse);
  const { instructions, files: texts } = await readInstructions(checked, source.file, findings.refuse);
  checkSurfaces(checked, findings);
  checkNames(checked, options.built, findings);
  checkAgents(checked, options.built, findings);
  checkLimits(checked, findings);
  checkBudgets(checked, findings);
  checkPrograms(checked, source.file, options.built, findings);
  checkMappings(checked, findings);
  checkEndpoints(checked, findings);
  checkDoors(checked, source.value, findings);
  if (source.file !== null) checkReferences(checked, source.value, findings);
  // A weak secret is refused in production, or if another machine can reach the gateway.
  const isReachable = listenersOf(checked, { ...address, tls: [] }).some(({ host }) => !isLoopback(host));
  checkSecrets(checked, isReachable || options.env.NODE_ENV === "production", findings);
  const skills = await checkSkills(checked, source.file, findings);
  await checkSchedules(checked, { ...options.built, file: source.file, skills }, findings);
  refuseIf(source, findings.faults);

  const secrets = hiddenValues(checked, references.filled, options.env);
  return {
    config: freeze(resolveConfig(checked, { file: source.file, ...address, tls, instructions })),
    file: source.file,
    files: { ...certificates, ...texts },
    warnings: findings.warnings.map((fault) => showProblem(locate(source, fault))),
    values: effectiveValues(checked, source, address.overrides, secrets),
    loadedAt: Date.now(),
    secrets,
    tryOut: null,
  };
}

/** Validates a configuration and fills in the defaults, in place. `written` is the same before its references were filled in. */
async function conform(value: unknown, written: unknown): Promise<{ checked: CheckedConfig; faults: Fault[] }> {
  const checked = value as CheckedConfig;
  if (conforms(value)) return { checked, faults: [] };
  // The explanations and their schema are loaded only for a mistake.
  const { explain } = await import("./explain.ts");
  return { checked, faults: explain(conforms.errors ?? [], value, written) };
}

function refuseIf(source: Source, faults: readonly Fault[], others: readonly ConfigProblem[] = []): void {
  if (faults.length + others.length === 0) return;
  const located = faults.map((fault) => locate(source, fault));
  located.sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
  throw new ConfigError([...others, ...located]);
}

function addressFrom({ host, port, env }: LoadOptions) {
  const problems: ConfigProblem[] = [];
  const written = env.GATEWAY_PORT?.trim() || undefined;
  const given = port ?? (written === undefined ? undefined : Number(written));
  if (given !== undefined && !(Number.isInteger(given) && given >= 0 && given <= 65535)) {
    const key = port === undefined ? "GATEWAY_PORT" : "--port";
    const message = "is not a port: give a whole number from 0 to 65535.";
    problems.push({ file: null, line: null, column: null, key, message });
  }
  const named = env.GATEWAY_HOST?.trim() || undefined;
  const overrideOf = <T extends string | number>(flag: T | undefined, value: T | undefined, variable: string) => {
    if (flag !== undefined) return { value: flag, origin: "flag", variable: null } satisfies Override;
    return value === undefined ? undefined : ({ value, origin: "environment", variable } satisfies Override);
  };
  const overrides = {
    host: overrideOf(host, named, "GATEWAY_HOST"),
    port: overrideOf(port, written === undefined ? undefined : given, "GATEWAY_PORT"),
  };
  return { host: host ?? named, port: given, problems, overrides };
}

function freeze<T>(value: T): Frozen<T> {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(freeze);
  }
  return value as Frozen<T>;
}

/** The variables with the secrets of a try-out, by the key that each would have in a file. */
const VARIABLES = {
  "gateway.rest.auth.keys[0].key": "REST_API_KEY",
  "gateway.rpc.auth.tokens[0].token": "RPC_TOKEN",
  "gateway.console.token": "CONSOLE_TOKEN",
  "webhooks.token": "WEBHOOK_TOKEN",
} as const;

/** The secrets of a start without a configuration, by variable. They are shown once, on the terminal. */
export type TryOut = Record<(typeof VARIABLES)[keyof typeof VARIABLES], string>;

/** The configuration of a try-out: one echo agent, a store in memory, and new secrets. */
async function loadTryOut(options: LoadOptions): Promise<LoadedConfig> {
  const { env } = options;
  const secretOf = (name: string): string => env[name]?.trim() || randomBytes(24).toString("base64url");
  const secrets = Object.values(VARIABLES).map((name) => [name, secretOf(name)]);
  const tryOut = Object.fromEntries(secrets) as TryOut;
  const name = "try-out";
  const value: ConfigFile = {
    gateway: {
      rest: { auth: { keys: [{ name, key: tryOut.REST_API_KEY }] } },
      rpc: { auth: { tokens: [{ name, token: tryOut.RPC_TOKEN, permissions: "*" }] } },
      console: { token: tryOut.CONSOLE_TOKEN },
    },
    webhooks: { token: tryOut.WEBHOOK_TOKEN },
    agents: { main: { backend: "echo", description: "Repeats each message." } },
  };
  const given = Object.entries(VARIABLES).filter(([, variable]) => env[variable]?.trim());
  const loaded = await settle(unwritten(value, Object.fromEntries(given)), options);
  return { ...loaded, secrets: [...loaded.secrets, ...Object.values(tryOut)], tryOut };
}
