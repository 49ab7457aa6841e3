import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { packageVersions } from "../version.ts";

type PackageName = keyof typeof packageVersions;

/** The packages that are loaded only where the configuration asks for them, by what asks. */
const NEEDED: Readonly<Record<string, readonly PackageName[]>> = {
  sqlite: ["libsql"],
  postgres: ["pg"],
  model: ["zod"],
  openai: ["@ai-sdk/openai"],
  anthropic: ["@ai-sdk/anthropic"],
  google: ["@ai-sdk/google"],
  "openai-compatible": ["@ai-sdk/openai-compatible"],
  a2a: ["@a2a-js/sdk"],
  acp: ["@agentclientprotocol/sdk", "zod"],
  tools: ["@modelcontextprotocol/sdk", "zod"],
};

/** What needs nothing. Any other name that is not known is that of a package which the configuration names. */
const BUILT_IN: ReadonlySet<string> = new Set(["memory", "echo", "command", "http"]);
const versions: Readonly<Record<string, string>> = packageVersions;

/** The command that installs the packages which these need and this machine lacks; undefined when all are there. */
export const missingPackages = (wanted: readonly string[]): string | undefined => {
  const names = new Set(wanted.flatMap<string>((what) => NEEDED[what] ?? (BUILT_IN.has(what) ? [] : [what])));
  const missing = [...names].filter((name) => !isThere(name));
  if (missing.length === 0) return undefined;
  return `npm install ${missing.map((name) => (versions[name] ? `${name}@${versions[name]}` : name)).join(" ")}`;
};

const isThere = (name: string): boolean => {
  const paths = createRequire(import.meta.url).resolve.paths(name) ?? [];
  return paths.some((folder) => existsSync(join(folder, name, "package.json")));
};
