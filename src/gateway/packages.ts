import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { packageVersions } from "../version.ts";

type PackageName = keyof typeof packageVersions;

/** The packages that are loaded only if the configuration asks for them, by the part that asks. */
const NEEDED: Readonly<Record<string, readonly PackageName[]>> = {
  memory: [],
  sqlite: ["libsql"],
  postgres: ["pg"],
  echo: [],
  command: [],
  http: [],
  model: [],
  openai: ["@ai-sdk/openai", "zod"],
  anthropic: ["@ai-sdk/anthropic", "zod"],
  google: ["@ai-sdk/google", "zod"],
  "openai-compatible": [],
  a2a: ["@a2a-js/sdk"],
  acp: [],
  tools: ["@modelcontextprotocol/sdk", "zod"],
};

const versions: Readonly<Record<string, string>> = packageVersions;

/** The command that installs the packages which these need and this machine lacks; undefined when all are there. */
export const missingPackages = (wanted: readonly string[]): string | undefined => {
  const names = new Set(wanted.flatMap<string>((what) => NEEDED[what] ?? [what, "zod"]));
  const missing = [...names].filter((name) => !isThere(name));
  if (missing.length === 0) return undefined;
  return `npm install ${missing.map((name) => (versions[name] ? `${name}@${versions[name]}` : name)).join(" ")}`;
};

const isThere = (name: string): boolean => {
  const paths = createRequire(import.meta.url).resolve.paths(name) ?? [];
  return paths.some((folder) => existsSync(join(folder, name, "package.json")));
};
