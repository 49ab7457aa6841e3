import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Built, checkNames } from "./check.ts";
import { checkAgents, checkPrograms } from "./check-agents.ts";
import { checkChannels, checkDoors, isLoopback } from "./check-doors.ts";
import { checkMappings } from "./check-mappings.ts";
import { checkReferences, checkSecrets } from "./check-secrets.ts";
import { checkSkills } from "./check-skills.ts";
import type { LoadedConfig } from "./config.ts";
import { conform } from "./conform.ts";
import { effectiveValues, type Override } from "./effective.ts";
import { readCertificates, readConfig, readInstructions, tracesOf } from "./files.ts";
import { parseConfig } from "./parse.ts";
import { ConfigError, type ConfigProblem, createFindings, dotted, type Fault, showProblem } from "./problems.ts";
import { resolveReferences } from "./references.ts";
import { listenersOf, resolveConfig } from "./resolve.ts";
import { locate, type Source, unwritten } from "./source.ts";
import { checkSurfaces } from "./surfaces.ts";
import { tryOutConfig } from "./try-out.ts";

export type LoadOptions = {
  /** `--config`. Else `$GATEWAY_CONFIG`, else ./gateway.json5 if it is there, else the try-out. */
  file?: string | undefined;
  env: NodeJS.ProcessEnv;
  /** `--host` and `--port`; they win over `$GATEWAY_HOST` and `$GATEWAY_PORT`, and those over the file. */
  host?: string | undefined;
  port?: number | undefined;
  /** The stores and backends of this build. */
  built: Built;
  /** Where gateway.json5 is looked for, if no file is named. */
  folder?: string;
};

/** Reads the configuration. Throws ConfigError with all that is wrong; what it returns never changes. */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const usual = join(options.folder ?? ".", "gateway.json5");
  const file = options.file ?? (options.env.GATEWAY_CONFIG || (existsSync(usual) ? usual : undefined));
  if (file !== undefined) {
    const trace = await tracesOf([file]);
    const loaded = await settle(await parseConfig(file, await readConfig(file)), options);
    return { ...loaded, files: { ...trace, ...loaded.files } };
  }
  const { value, tryOut, names, from } = tryOutConfig(options.env);
  return { ...(await settle(unwritten(value, names, from), options)), tryOut };
}

/** Makes a configuration of what was written: references, schema, checks, and the form that the gateway uses. */
export async function settle(source: Source, options: LoadOptions): Promise<LoadedConfig> {
  const address = addressFrom(options);
  // Only a file refers to variables; what a program hands over is taken as it is.
  const references =
    source.file === null ? { value: source.value, faults: [] } : resolveReferences(source.value, options.env);
  const { checked, faults } = await conform(structuredClone(references.value), source.value);
  // A value that a missing variable would have given is not held to the schema: one mistake, one sentence.
  const unresolved = new Set(references.faults.map(({ path }) => dotted(path)));
  const found = [...references.faults, ...faults.filter(({ path }) => !unresolved.has(dotted(path)))];
  refuseIf(source, found, address.problems);

  const exposed = isExposed(listenersOf(checked, { ...address, tls: [] }), options.env);
  const findings = createFindings();
  const { tls, files: certificates } = await readCertificates(checked, source.file, findings.refuse);
  const { instructions, files: texts } = await readInstructions(checked, source.file, findings.refuse);
  checkSurfaces(checked, findings);
  checkNames(checked, options.built, findings);
  checkAgents(checked, options.built, findings);
  checkPrograms(checked, source.file, options.built, findings);
  checkMappings(checked, findings);
  checkChannels(checked, findings);
  checkDoors(checked, source.value, findings);
  if (source.file !== null) checkReferences(checked, source.value, findings);
  checkSecrets(checked, exposed, findings);
  await checkSkills(checked, source.file, findings);
  refuseIf(source, findings.faults);

  return {
    config: freeze(resolveConfig(checked, { file: source.file, ...address, tls, instructions })),
    file: source.file,
    files: { ...certificates, ...texts },
    warnings: findings.warnings.map((fault) => showProblem(locate(source, fault))),
    values: effectiveValues(checked, source, address.overrides),
    loadedAt: Date.now(),
    tryOut: null,
  };
}

function refuseIf(source: Source, faults: readonly Fault[], others: readonly ConfigProblem[] = []): void {
  if (faults.length + others.length === 0) return;
  const located = faults.map((fault) => locate(source, fault));
  located.sort((a, b) => (a.line ?? 0) - (b.line ?? 0) || (a.column ?? 0) - (b.column ?? 0));
  throw new ConfigError([...others, ...located]);
}

/** In production, or where another machine can reach it, a weak secret is refused. */
const isExposed = (listeners: readonly { host: string }[], env: NodeJS.ProcessEnv): boolean =>
  env.NODE_ENV === "production" || listeners.some(({ host }) => !isLoopback(host));

function addressFrom({ host, port, env }: LoadOptions) {
  const problems: ConfigProblem[] = [];
  const written = env.GATEWAY_PORT?.trim() || undefined;
  const given = port ?? (written === undefined ? undefined : Number(written));
  if (given !== undefined && !(Number.isInteger(given) && given >= 0 && given <= 65535)) {
    const key = port === undefined ? "GATEWAY_PORT" : "--port";
    problems.push({
      file: null,
      line: null,
      column: null,
      key,
      message: "is no port: give a whole number from 0 to 65535.",
    });
  }
  const named = env.GATEWAY_HOST?.trim() || undefined;
  const overrides = {
    host: overrideOf(host, named, "GATEWAY_HOST"),
    port: overrideOf(port, written === undefined ? undefined : given, "GATEWAY_PORT"),
  };
  return { host: host ?? named, port: given, problems, overrides };
}

function overrideOf(
  flag: string | number | undefined,
  named: string | number | undefined,
  variable: string,
): Override | undefined {
  if (flag !== undefined) return { value: flag, origin: "flag", variable: null };
  return named === undefined ? undefined : { value: named, origin: "environment", variable };
}

function freeze<T>(value: T): T {
  if (typeof value === "object" && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    Object.values(value).forEach(freeze);
  }
  return value;
}
