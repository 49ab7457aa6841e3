import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { main } from "#test/harness/process.ts";
import { emptyFolder, runCli } from "./cli.ts";

const PACKAGE = "/usr/share/bash-completion/bash_completion";
const command = `${JSON.stringify(process.execPath)} ${JSON.stringify(main)}`;

type Shell = {
  start: string;
  /** The file that the help names, in the home folder. */
  script: string;
  /** Typed first. */
  setUp: string;
  lacks: boolean;
};

function isMissing(shell: string): boolean {
  return spawnSync(shell, ["--version"]).error !== undefined;
}
const SHELLS: Record<string, Shell> = {
  bash: {
    start: "bash --norc --noprofile -i",
    script: "agent-gateway.bash",
    setUp: `agent-gateway() { ${command} "$@"; }; source ~/agent-gateway.bash`,
    lacks: isMissing("bash"),
  },
  "bash with bash-completion": {
    start: "bash --norc --noprofile -i",
    script: ".local/share/bash-completion/completions/agent-gateway",
    setUp: `agent-gateway() { ${command} "$@"; }; source ${PACKAGE}`,
    lacks: !existsSync(PACKAGE),
  },
  zsh: {
    start: "zsh -f -i",
    script: "functions/_agent-gateway",
    // A TAB of zsh otherwise expands a substitution in the word at the cursor, whatever the command is.
    setUp: `agent-gateway() { ${command} "$@" }; fpath=(~/functions $fpath); autoload -U compinit; compinit -u -D; bindkey '^I' complete-word`,
    lacks: isMissing("zsh"),
  },
  fish: {
    start: "fish --no-config --private --interactive",
    script: ".config/fish/completions/agent-gateway.fish",
    setUp: `function agent-gateway; ${command} $argv; end; set -g fish_autosuggestion_enabled 0; source ~/.config/fish/completions/agent-gateway.fish`,
    lacks: isMissing("fish"),
  },
};

/** Starts a shell on a terminal, in a folder that has one file, with the completion as its help describes. */
async function startShell(name: string) {
  const { start, script, setUp } = SHELLS[name] as Shell;
  const [home, cwd] = [emptyFolder(), emptyFolder()];
  writeFileSync(join(cwd, "precious.json"), "precious");
  const { out } = await runCli(["completion", name.split(" ")[0] as string]);
  mkdirSync(dirname(join(home, script)), { recursive: true });
  writeFileSync(join(home, script), out);
  const child = spawn("script", ["-qefc", `stty cols 120 rows 40; exec ${start}`, "/dev/null"], {
    cwd,
    env: {
      PATH: process.env.PATH ?? "",
      HOME: home,
      TERM: "xterm",
      SHELL: "/bin/sh",
      LC_ALL: "C.UTF-8",
      HISTFILE: "/dev/null",
    },
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let shown = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    shown += text;
  });
  let asked = 0;
  const type = (text: string): void => void child.stdin.write(text);
  const shows = async (text: string): Promise<void> =>
    await expect.poll(() => shown, { timeout: 40_000 }).toContain(text);
  /** Waits until the shell has executed the earlier input, on a cleared line. */
  const settle = async (): Promise<void> => {
    asked += 1;
    type(`\u0015echo settled-"${asked}"\r`);
    await shows(`settled-${asked}`);
  };
  type(`${setUp}\r`);
  await settle();
  return {
    cwd,
    settle,
    /** Types the beginning of a line and TAB; resolves once the shell shows the expected text. */
    complete: async (text: string, expected: string): Promise<void> => {
      shown = "";
      type(`${text}\t`);
      await shows(expected);
      await settle();
    },
    /** Types the beginning of a line and TAB. */
    tab: async (text: string): Promise<void> => {
      type(`${text}\t`);
      await settle();
    },
  };
}

const HOSTILE = [
  'agent-gateway send main "$(touch PWN1)" --se',
  "agent-gateway openapi > precious.json --off",
  "agent-gateway openapi >> PWN2 --off",
  "agent-gateway send main 'x; touch PWN3 ' --se",
  "agent-gateway send main `touch PWN4` --se",
  "agent-gateway send main 'x' --session=`touch PWN5` --se",
  "agent-gateway send --session=$(touch$IFS'PWN6')=",
  "agent-gateway send --session=$(touch PWN7)",
  "agent-gateway send main <(touch PWN8) --se",
  'agent-gateway send main "$((x[$(touch PWN9)]))" --se',
  'agent-gateway send main "not closed $(touch PWN10) --se',
  "agent-gateway send main (touch PWN11) --se",
  "agent-gateway send main \\'; touch PWN12 \\' --se",
  "agent-gateway '$(touch PWN13)' --se",
];

describe.each(Object.entries(SHELLS))("%s", (name, { lacks }) => {
  test.skipIf(lacks)(`completes commands, options and choices (needs ${name})`, async () => {
    const shell = await startShell(name);
    await shell.complete("agent-gateway deliv", "agent-gateway deliveries");
    await shell.complete("agent-gateway deliveries cu", "deliveries curl");
    await shell.complete("agent-gateway deliveries list --outcome fai", "--outcome failed");
    await shell.complete("agent-gateway init --backend=ech", "--backend=echo");
    await shell.complete('agent-gateway send main "hello there" --no-s', "--no-stream");
    await shell.complete("agent-gateway send main --url http://127.0.0.1:1 --no-s", "--no-stream");
  });

  test.skipIf(lacks)(`executes and writes nothing of the typed text (needs ${name})`, async () => {
    const shell = await startShell(name);
    for (const line of HOSTILE) await shell.tab(line);
    await shell.complete("agent-gateway openapi > precious.json --off", "--offline");
    expect(readdirSync(shell.cwd)).toEqual(["precious.json"]);
    expect(readFileSync(join(shell.cwd, "precious.json"), "utf8")).toBe("precious");
  });
});

test("the script for PowerShell evaluates nothing", async () => {
  const { code, out, err } = await runCli(["completion", "powershell"]);
  expect([code, err]).toEqual([0, ""]);
  expect(out).toContain("Register-ArgumentCompleter");
  expect(out).not.toMatch(/Invoke-Expression|\biex\b/i);
});

test.each(["bash", "zsh", "fish"])("the script for %s has no eval", async (shell) => {
  expect((await runCli(["completion", shell])).out).not.toMatch(/\beval\b/);
});

test("lists the supported shells", async () => {
  expect(await runCli(["completion", "tcsh"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("zsh, bash, fish, powershell"),
  });
});

test("a word with quotes is completed as the word inside them", async () => {
  const { out } = await runCli(["complete", "--", '"init"', "--backend", '"ech']);
  expect(out).toBe("echo\t\n:4\n");
});
