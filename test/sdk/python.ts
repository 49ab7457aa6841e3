import { execFile, execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { root } from "#test/harness/process.ts";
import { syncOf } from "../../scripts/generate/sdk/unasync.ts";

const run = promisify(execFile);

/** Every supported Python of this machine, by its version. REQUIRE_PYTHON says that the machine must have one. */
const all: readonly (readonly [version: string, path: string])[] = (() => {
  const found = new Map<string, string>();
  for (const folder of new Set([...(process.env.PATH ?? "").split(":"), ...pyenvFolders()])) {
    for (const name of namesIn(folder).filter((one) => /^python3(\.\d+)?$/.test(one))) {
      const version = versionOf(join(folder, name));
      if (version && !found.has(version)) found.set(version, join(folder, name));
    }
  }
  if (found.size === 0 && process.env.REQUIRE_PYTHON)
    throw new Error("There is no Python from 3.9 on. Install python3.");
  return [...found];
})();

const byVersion = all.toSorted(([a], [b]) => a.localeCompare(b, undefined, { numeric: true }));
const oldest = byVersion.slice(0, 1);
const newest = byVersion.slice(-1);
/** The oldest and the newest Python of this machine. */
export const pythons = [...new Set([...oldest, ...newest])];

export type Form = "Gateway" | "AsyncGateway";
/** The async client on the oldest Python, and the other, which is generated from it, on the newest. */
export const forms: (readonly [form: Form, version: string, path: string])[] = [
  ...oldest.map((python) => ["AsyncGateway", ...python] as const),
  ...newest.map((python) => ["Gateway", ...python] as const),
];

/** Where pyenv keeps its versions. */
function pyenvFolders(): string[] {
  const versions = join(process.env.PYENV_ROOT ?? join(homedir(), ".pyenv"), "versions");
  return namesIn(versions).map((version) => join(versions, version, "bin"));
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function versionOf(path: string): string | undefined {
  try {
    const code = "import sys; print('.'.join(map(str, sys.version_info[:3])), sys.version_info >= (3, 9))";
    const [version, isEnough] = execFileSync(path, ["-c", code], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
    })
      .trim()
      .split(" ");
    return isEnough === "True" ? version : undefined;
  } catch {
    return undefined;
  }
}

const pythonSources = join(root, "generated/clients/python/src");

const PRELUDE = `
import json
import agent_gateway
from agent_gateway import *
from agent_gateway import webhooks

def show(*values):
    print(json.dumps(values[0] if len(values) == 1 else values))

async def failing(call):
    try:
        return {"answered": await call()}
    except GatewayError as error:
        facts = {name: getattr(error, name) for name in ("name", "operation", "status", "detail", "request_id", "turn_id", "retry_after", "idempotency_key")}
        return {"class": type(error).__name__, "text": str(error), **{k: v for k, v in facts.items() if v is not None}}
`;

/** Runs a program that is written with async and await, in the form of a client. */
export function runForm(
  form: Form,
  python: string,
  code: string,
  env: Record<string, string> = {},
): Promise<unknown[]> {
  if (form === "Gateway") return runPython(python, syncOf(code), env);
  const body = code.replace(/^(?=.)/gm, "    ");
  return runProgram(python, `${PRELUDE}\nimport asyncio\nasync def main():\n${body}\nasyncio.run(main())`, env);
}

/** Runs a Python program with the client, and returns its printed values, one per line. */
export function runPython(python: string, code: string, env: Record<string, string> = {}): Promise<unknown[]> {
  return runProgram(python, syncOf(PRELUDE) + code, env);
}

async function runProgram(python: string, program: string, env: Record<string, string>): Promise<unknown[]> {
  const { stdout } = await run(python, ["-X", "dev", "-W", "error", "-c", program], {
    env: { PATH: process.env.PATH ?? "", PYTHONPATH: pythonSources, PYTHONDONTWRITEBYTECODE: "1", ...env },
    timeout: 60_000,
  });
  return stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line));
}
