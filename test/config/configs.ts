import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { type LoadedConfig, type LoadOptions, loadConfig } from "#config/load.ts";
import { ConfigError } from "#config/problems.ts";

export const built = { stores: ["memory"], backends: ["echo"] };

/** A folder that is deleted after the test. */
export function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "gateway-config-"));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

type Written = Partial<LoadOptions> & { name?: string };

/** Writes a configuration file and loads it. */
export function load(
  text: string | Uint8Array,
  { name = "gateway.json5", ...options }: Written = {},
): Promise<LoadedConfig> {
  const file = join(folder(), name);
  writeFileSync(file, text);
  return loadConfig({ file, env: {}, built, ...options });
}

/** The errors of a refused configuration, line by line as they are printed, without the folder. */
export async function refusal(text: string | Uint8Array, options: Written = {}): Promise<string[]> {
  const error = await load(text, options).then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (!(error instanceof ConfigError)) throw new Error(`expected a refusal, found ${String(error)}`);
  return error.message.split("\n").map((line) => line.replace(/^\S*gateway-config-\w+\//, ""));
}

/** A configuration with one echo agent and these sections. */
export function withSections(sections: object): string {
  return JSON.stringify({ agents: { main: { backend: "echo" } }, ...sections });
}

/** Secrets without a fault. */
export function good(n: number): string {
  return `a-good-long-secret-${n}`;
}

/** The errors of refused sections, without their places. */
export async function refused(sections: object, options: Written = {}): Promise<string[]> {
  return (await refusal(withSections(sections), options)).map((line) => line.replace(/^gateway\.json5:\d+:\d+: /, ""));
}

/** The warnings of accepted sections, without their places. */
export async function warned(sections: object, options: Written = {}): Promise<string[]> {
  return (await load(withSections(sections), options)).warnings.map((line) =>
    line.replace(/^\S*gateway\.json5:\d+:\d+: /, ""),
  );
}

const whole = {
  stores: ["memory", "sqlite", "postgres"],
  backends: ["echo", "http", "model", "command", "a2a", "acp"],
};

/** The errors of refused sections, or the warnings of accepted ones, for a build with all features. */
export async function refusedOrWarned(sections: object): Promise<string[]> {
  try {
    return (await warned(sections, { built: whole })).map((line) => `warning: ${line}`);
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return await refused(sections, { built: whole });
  }
}

/** The section with these tokens, or these keys. */
export function rpc(...tokens: object[]) {
  return {
    rpc: { auth: { tokens: tokens.map((token, n) => ({ name: `t${n}`, permissions: "*", ...token })) } },
  };
}
export function rest(...keys: object[]) {
  return {
    rest: { auth: { keys: keys.map((key, n) => ({ name: `k${n}`, ...key })) } },
  };
}
