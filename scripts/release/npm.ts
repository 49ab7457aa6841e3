import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { outputOf, ProgramFailed, registryAddress } from "./programs.ts";

function scopeOf(name: string): string | undefined {
  return /^@[^/]+(?=\/)/.exec(name)?.[0];
}

/** The registry of a package in npm's configuration. */
export async function npmRegistryOf(name: string, cwd: string): Promise<URL> {
  const scope = scopeOf(name);
  for (const key of scope ? [`${scope}:registry`, "registry"] : ["registry"]) {
    const text = (await outputOf("npm", ["config", "get", key], { cwd })).trim();
    if (text === "" || text === "undefined") continue;
    const url = registryAddress(text, `npm's \`${key}\``);
    if (!url.pathname.endsWith("/")) url.pathname += "/";
    return url;
  }
  throw new Error("npm's `registry` is not set.");
}

/**
 * Copies the files of the gateway's package, built before, into `folder`. The copy's package.json is not private: `private` stops an `npm publish`
 * in a clone, which would skip this script's checks.
 */
export async function copyPackage(root: string, folder: string): Promise<void> {
  const packed = await outputOf("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: root });
  for (const { path } of JSON.parse(packed)[0].files as { path: string }[]) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await copyFile(join(root, path), join(folder, path));
  }
  const { private: _, ...manifest } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  await writeFile(join(folder, "package.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}

/** Publishes the package in `folder`; false if the registry has its version already. `scratch` is a folder that only this user can read. */
export async function publishToNpm(folder: string, registry: URL, scratch: string): Promise<boolean> {
  const { name, version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const scope = scopeOf(name);
  const userconfig = join(scratch, "npmrc");
  // npm replaces `${NPM_TOKEN}` when it reads the file, so that the token is not written to the disk.
  const lines = [`registry=${registry}`, `//${registry.host}${registry.pathname}:_authToken=\${NPM_TOKEN}`];
  if (scope) lines.push(`${scope}:registry=${registry}`);
  await writeFile(userconfig, `${lines.join("\n")}\n`, { mode: 0o600 });
  // The user's own file has a lower priority: its proxy and certificates are used, but not its token for this registry.
  const usual = (await outputOf("npm", ["config", "get", "userconfig"], { cwd: scratch })).trim();
  const options = ["--userconfig", userconfig, "--globalconfig", usual, "--loglevel", "error"];
  const npm = (...args: string[]) => outputOf("npm", [...args, ...options], { cwd: scratch, token: "NPM_TOKEN" });

  try {
    const found = await npm("view", `${name}@${version}`, "version", "--json");
    if (found.trim() !== "") return false;
  } catch (error) {
    if (!(error instanceof ProgramFailed) || !/"code": "E404"/.test(error.stdout)) throw error;
  }
  await npm("publish", folder, "--ignore-scripts", "--access", "public");
  return true;
}
