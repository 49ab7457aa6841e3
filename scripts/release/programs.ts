import { execFile } from "node:child_process";
import { promisify } from "node:util";

const execute = promisify(execFile);

export const TOKENS = ["NPM_TOKEN", "PYPI_TOKEN"] as const;
export type Token = (typeof TOKENS)[number];

const PROGRAM_MS = 10 * 60_000;
const OUTPUT_BYTES = 16 * 1024 * 1024;

/** A program that failed, with its output. */
export class ProgramFailed extends Error {
  readonly stdout: string;

  constructor(command: string, stdout: string, stderr: string) {
    super(`\`${command}\` failed:\n${(stderr.trim() || stdout.trim()).slice(-4_000)}`);
    this.stdout = stdout;
  }
}

/** The standard output of a program. Its environment has no token other than `token`, and its arguments never have one. */
export async function outputOf(
  program: string,
  args: string[],
  { cwd, token }: { cwd: string; token?: Token },
): Promise<string> {
  const env: NodeJS.ProcessEnv = { ...process.env, npm_config_update_notifier: "false" };
  for (const name of TOKENS) if (name !== token) delete env[name];
  const limits = { timeout: PROGRAM_MS, maxBuffer: OUTPUT_BYTES };
  const running = execute(program, args, { cwd, env, ...limits });
  running.child.stdin?.end();
  try {
    return (await running).stdout;
  } catch (error) {
    const { stdout = "", stderr = "", message } = error as Error & { stdout?: string; stderr?: string };
    throw new ProgramFailed([program, ...args].join(" "), stdout, stderr || stdout || message);
  }
}

/** The address of a registry, if a token may be sent to it. `source` names the setting that has the address. */
export function registryAddress(text: string, source: string): URL {
  if (!URL.canParse(text)) throw new Error(`${source} is not an address.`);
  const url = new URL(text);
  if (url.username !== "" || url.password !== "")
    throw new Error(`${source} has a user or a password. Remove them: the registry gets the token only.`);
  const isLoopback = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  if (url.protocol !== "https:" && !(url.protocol === "http:" && isLoopback))
    throw new Error(`${source} is ${url.origin}, which would get the token in clear text. Use https.`);
  return url;
}
