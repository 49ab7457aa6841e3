import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { root } from "#test/harness/process.ts";

export const DOCKERFILE = "docs/deploy/Dockerfile";

/** The last stage of the Dockerfile: the command that an engine would start, with its user, folder and variables. */
export function readImage() {
  const text = readFileSync(join(root, DOCKERFILE), "utf8");
  const stage = text.slice(text.lastIndexOf("\nFROM "));
  const one = (word: string): string => new RegExp(`^${word} (.+)$`, "m").exec(stage)?.[1] ?? "";
  const list = (word: string): string[] =>
    JSON.parse(new RegExp(`^${word} .*?(\\[.*\\])$`, "m").exec(stage)?.[1] ?? "[]");
  return {
    env: Object.fromEntries([...stage.matchAll(/^ENV (\w+)=(.*)$/gm)].map(([, name, value]) => [name, value])),
    user: one("USER"),
    folder: one("WORKDIR"),
    volume: one("VOLUME"),
    start: [...list("ENTRYPOINT"), ...list("CMD")],
    health: list("HEALTHCHECK"),
  };
}

/** True if this process may create a file system and enter it. */
export function canEnter(): boolean {
  return process.getuid?.() === 0 && spawnSync("unshare", ["--mount", "true"], { stdio: "ignore" }).status === 0;
}

/**
 * A folder with the layout of the image. `enter` is the command line that runs a command of the image in it, as its user, with the root read-only and
 * `data` in the place of the volume. The system's libraries are those of this machine.
 */
export function layOutImage(config: string) {
  const { env, user, folder, volume } = readImage();
  const place = mkdtempSync(join(tmpdir(), "image-"));
  const files = join(place, "files");
  const at = (path: string) => join(files, path);
  for (const path of ["app/node_modules", "data", "etc/agent-gateway", "bin-of-image", "proc", "dev", "mnt"])
    mkdirSync(at(path), { recursive: true });
  for (const path of ["usr", "lib", "lib64", "bin"])
    if (existsSync(`/${path}`)) mkdirSync(at(path), { recursive: true });
  cpSync(join(root, "dist"), at("app/dist"), { recursive: true });
  chmodSync(at("app/dist/main.js"), 0o755);
  cpSync(join(root, "package.json"), at("app/package.json"));
  cpSync(process.execPath, at("bin-of-image/node"));
  symlinkSync("/app/dist/main.js", at("bin-of-image/agent-gateway"));
  cpSync(config, at(env.GATEWAY_CONFIG as string));
  const data = join(place, "data");
  mkdirSync(data);
  execFileSync("chown", [user, data]);
  execFileSync("chmod", ["-R", "a+rX", files]);
  chmodSync(place, 0o755);

  const binds = ["usr", "lib", "lib64", "bin", "proc", "dev"].filter((path) => existsSync(at(path)));
  const script = [
    "set -e",
    `mount --bind '${files}' '${files}'`,
    ...binds.map((path) => `mount --rbind /${path} '${at(path)}'`),
    `mount --bind '${join(root, "node_modules")}' '${at("app/node_modules")}'`,
    `mount -o remount,bind,ro '${files}'`,
    `mount --bind '${data}' '${at(volume)}'`,
    `exec /usr/sbin/chroot --userspec=${user} '${files}' /bin/sh -c 'cd ${folder} && exec "$@"' sh "$@"`,
  ].join("\n");
  return {
    data,
    env: { ...env, PATH: "/bin-of-image:/usr/bin:/bin", HOME: "/" } as Record<string, string>,
    enter: (command: readonly string[]) => ["unshare", "--mount", "sh", "-c", script, "sh", ...command],
    [Symbol.dispose]: () => rmSync(place, { recursive: true, force: true }),
  };
}
