import { stat } from "node:fs/promises";
import { dirname, extname, isAbsolute, resolve } from "node:path";
import { NOT_REGULAR, readRegularFile, TOO_LARGE } from "#kit/regular-file.ts";
import type { CheckedConfig, Tls } from "./config.ts";
import { ConfigError, type Report, type Source } from "./problems.ts";

/** Configurations are written by people; a larger file is a mistake. */
const MAX_CONFIG = 4 * 2 ** 20;
/** The limit of instructions: models do not accept more. */
const MAX_INSTRUCTIONS = 2 ** 20;
/** The limit of a certificate with its chain, and of a key. */
const MAX_CERTIFICATE = 2 ** 20;

/** The fingerprints of files, by path. They differ between versions of a file. */
type Traces = Record<string, string>;

/** Reads a configuration file. Throws ConfigError with the place of the error. */
export async function readSource(file: string): Promise<Source> {
  const bytes = await readRegularFile(file, MAX_CONFIG).catch((error: unknown) => {
    throw isTooLarge(error)
      ? refusal(file, "is larger than 4 MiB, too large for a configuration: name another one.")
      : refusal(file, `cannot be read: ${reasonOf(error)}`);
  });
  return await parseConfig(file, bytes);
}

/** Reads the text of a configuration file, by the ending of its name. */
export async function parseConfig(file: string, bytes: Uint8Array): Promise<Source> {
  const text = decoded(file, bytes);
  // Each parser is loaded only for a file that needs it: a gateway reads one.
  switch (extname(file).toLowerCase()) {
    case ".json5":
    case ".json":
      return (await import("./parse-json.ts")).parseJson(file, text);
    case ".yaml":
    case ".yml":
      return (await import("./parse-yaml.ts")).parseYaml(file, text);
    default:
      throw refusal(file, "has a name that does not end in .json5, .json, .yaml or .yml: rename it.");
  }
}

function decoded(file: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw refusal(file, "is not UTF-8 text: save it as UTF-8.");
  }
}

function refusal(file: string, message: string) {
  return new ConfigError([{ file, line: null, column: null, key: "", message: `the file ${message}` }]);
}

/** The fingerprint of a file, from its metadata. */
async function traceOf(file: string): Promise<string> {
  const found = await stat(file, { bigint: true }).catch(() => undefined);
  return found ? `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}` : "none";
}

/** The fingerprints of files, by path. Taken before the files are read, so that a change during the read is detected. */
export async function tracesOf(files: readonly string[]): Promise<Traces> {
  return Object.fromEntries(await Promise.all(files.map(async (file) => [file, await traceOf(file)] as const)));
}

/** Reads the instructions of all agents with `instructionsFile`. */
export async function readInstructions(
  { agents }: CheckedConfig,
  file: string | null,
  refuse: Report,
): Promise<{ instructions: ReadonlyMap<string, string>; files: Traces }> {
  const files: Traces = {};
  const instructions = new Map<string, string>();
  const readOf = async (name: string, written: string): Promise<void> => {
    const path = besideFile(file, written);
    const at = ["agents", name, "instructionsFile"];
    files[path] = await traceOf(path);
    try {
      const bytes = await readRegularFile(path, MAX_INSTRUCTIONS);
      if (!/\S/.test(bytes.toString()))
        refuse(at, `names the file \`${written}\`, which is empty: write the instructions in it.`);
      else instructions.set(name, bytes.toString().trim());
    } catch (error) {
      if (isTooLarge(error))
        refuse(at, `names the file \`${written}\`, which is larger than 1 MiB: name a file of instructions.`);
      else refuse(at, `names the file ${unreadable(written, error)}`);
    }
  };
  const named = Object.entries(agents).filter(([, { instructionsFile }]) => instructionsFile !== undefined);
  await Promise.all(named.map(([name, { instructionsFile = "" }]) => readOf(name, instructionsFile)));
  return { instructions, files };
}

/** Reads the certificates of all listeners, and checks each with its key. */
export async function readCertificates(
  { gateway }: CheckedConfig,
  file: string | null,
  refuse: Report,
): Promise<{ tls: (Tls | undefined)[]; files: Traces }> {
  const files: Traces = {};
  const tls = (gateway.listeners ?? []).map(async (listener, index) => {
    if (listener.tls === undefined) return undefined;
    const at = ["gateway", "listeners", index, "tls"];
    const readOf = async (key: "cert" | "key"): Promise<string> => {
      const written = listener.tls?.[key] ?? "";
      const path = besideFile(file, written);
      files[path] = await traceOf(path);
      const bytes = await readRegularFile(path, MAX_CERTIFICATE).catch((error: unknown) => {
        refuse([...at, key], `names the file ${unreadable(written, error)}`);
      });
      return bytes?.toString() ?? "";
    };
    const pair = { cert: await readOf("cert"), key: await readOf("key"), hsts: listener.tls.hsts };
    if (pair.cert === "" || pair.key === "") return undefined;
    if (!(await belongTogether(pair)))
      refuse(
        at,
        "has a certificate and a key that do not belong together, or a file that is not PEM: check `cert` and `key`.",
      );
    return pair;
  });
  return { tls: await Promise.all(tls), files };
}

async function belongTogether(pair: Tls): Promise<boolean> {
  const { createSecureContext } = await import("node:tls");
  try {
    createSecureContext(pair);
    return true;
  } catch {
    return false;
  }
}

/** Paths are relative to the folder of the configuration file. */
export function besideFile(file: string | null, path: string): string {
  return resolve(file === null ? "." : dirname(file), path);
}

/** The message for an unreadable path: the path as written, the reason, and the remedy. */
export function unreadable(written: string, error: unknown): string {
  const isLost = (error as NodeJS.ErrnoException).code === "ENOENT" && !isAbsolute(written);
  return `\`${written}\`, which cannot be read: ${reasonOf(error)}${isLost ? " It is resolved relative to the configuration file." : ""}`;
}

function isTooLarge(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === TOO_LARGE;
}

/** The reason why a file cannot be read, and the remedy. */
function reasonOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code ?? "";
  const reasons: Record<string, string> = {
    ENOENT: "it does not exist. Create it, or name another one.",
    EACCES: "the gateway's user may not. Give that user the right to read it.",
    EPERM: "the gateway's user may not. Give that user the right to read it.",
    ENOTDIR: "it is not a folder, or not in one. Name another one.",
    EISDIR: "it is a folder. Name the file in it.",
    [NOT_REGULAR]: "it is not a regular file. Name one.",
    [TOO_LARGE]: "it is larger than 1 MiB. Name another one.",
    EMFILE: "too many files are open. Raise the limit, or try again when the load is less.",
  };
  return reasons[code] ?? `${code || "it failed"}. Look at the file and its disk.`;
}
