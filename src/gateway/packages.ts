import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
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
  mock: ["@open-rpc/server-js"],
  mcp: ["@modelcontextprotocol/server", "zod"],
  tools: ["@modelcontextprotocol/client", "zod"],
};

const versions: Readonly<Record<string, string>> = packageVersions;

/** The command that installs the packages which these need and this machine lacks; undefined when all are there. */
export function missingPackages(wanted: readonly string[]): string | undefined {
  const names = new Set(wanted.flatMap<string>((what) => NEEDED[what] ?? [what, "zod"]));
  const missing = [...names].filter((name) => !isThere(name));
  if (missing.length === 0) return undefined;
  return `${installOf(fileURLToPath(import.meta.url), process.cwd())} ${missing.map((name) => (versions[name] ? `${name}@${versions[name]}` : name)).join(" ")}`;
}

/** The command that installs a package where the file `from` of this program finds it. `cwd` is the folder in which the command runs. */
export function installOf(from: string, cwd: string): string {
  const at = from.split(sep).indexOf("node_modules");
  if (at < 0) return "npm install";
  const folder = from.split(sep).slice(0, at).join(sep) || sep;
  // npm's folder of global packages belongs to no project.
  if (!existsSync(join(folder, "package.json"))) return "npm install --global";
  const isInside = !relative(folder, cwd).startsWith("..");
  return isInside && dirname(folder) !== folder ? "npm install" : `npm install --prefix ${folder}`;
}

function isThere(name: string): boolean {
  const paths = createRequire(import.meta.url).resolve.paths(name) ?? [];
  return paths.some((folder) => existsSync(join(folder, name, "package.json")));
}
