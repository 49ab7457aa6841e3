import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import type { Chunk } from "#backends/backend.ts";
import { BackendError } from "#kit/errors.ts";
import { commandOf, failureOf, replyOf, sh, shell } from "./stand-ins/programs.ts";
import { backendSuite, collect, RICH_DOCUMENT, RICH_TURN, textOf, turnOf } from "./suite.ts";

for (const output of ["text", "json-lines"] as const)
  backendSuite({
    name: `command (${output})`,
    open: async () => commandOf(sh("command-agent.sh", "echo", output), { output }),
    openSlow: async () => commandOf(sh("command-agent.sh", "slow", output), { output }),
    openPaced: async () => commandOf(sh("command-agent.sh", "paced", output), { output }),
    openFailing: async () => commandOf(sh("command-agent.sh", "fail", output), { output }),
    deterministic: true,
  });

function signal() {
  return new AbortController().signal;
}
function lines(...pieces: unknown[]) {
  return shell(`cat > /dev/null; printf '%s\\n' ${pieces.map((piece) => `'${JSON.stringify(piece)}'`).join(" ")}`, {
    output: "json-lines",
  });
}

describe("the input of a command", () => {
  it("is the turn, as one line of JSON", async () => {
    const told = textOf(await collect(shell("cat").run(RICH_TURN, signal())));
    expect(told).not.toContain("\n");
    expect(JSON.parse(told)).toEqual(RICH_DOCUMENT);
  });

  it("has the newest messages of a long conversation, and the number of omitted ones", async () => {
    const history = Array.from({ length: 10 }, (_, n) => ({
      role: "user" as const,
      text: `${n}`.repeat(60_000),
      outside: false,
    }));
    const told = JSON.parse(
      textOf(await collect(shell("cat").run(turnOf({ history: async () => history }), signal()))),
    );
    expect(told.history.map(({ text }: { text: string }) => text[0])).toEqual(["6", "7", "8", "9"]);
    expect(told.historyOmitted).toBe(6);
  });

  it("has only the necessary variables of the gateway's environment", async () => {
    process.env.GATEWAY_SECRET = "s3cret";
    onTestFinished(() => void delete process.env.GATEWAY_SECRET);
    const told = await replyOf(shell("env", { env: { AGENT_KEY: "its own" } }));
    const names = told.split("\n").map((line) => line.slice(0, line.indexOf("=")));
    // The shell sets the last three itself.
    const allowed = ["PATH", "HOME", "LANG", "TMPDIR", "AGENT_KEY", "PWD", "OLDPWD", "SHLVL", "_"];
    expect(names.filter((name) => !allowed.includes(name))).toEqual([]);
    expect(told).toContain("AGENT_KEY=its own");
    expect(told).not.toContain("s3cret");
  });

  it("has no open files and sockets of the gateway", async () => {
    const folder = mkdtempSync(join(tmpdir(), "command-"));
    const file = openSync(join(folder, "secret"), "w");
    onTestFinished(() => {
      closeSync(file);
      rmSync(folder, { recursive: true });
    });
    const open = await replyOf(shell("ls -l /proc/self/fd"));
    expect(open).not.toContain("secret");
  });

  it("is not read by a shell", async () => {
    const told = await replyOf(commandOf(["printf", "%s", "$HOME; `id` && *"]));
    expect(told).toBe("$HOME; `id` && *");
  });

  it("includes the configured working folder", async () => {
    expect(await replyOf(shell("pwd", { cwd: "/usr" }))).toBe("/usr");
  });
});

describe("the output of a command", () => {
  it("is its text, without the line breaks at its end", async () => {
    expect(await replyOf(shell("printf 'a\\n\\nb\\n\\r\\n'"))).toBe("a\n\nb");
    expect(await replyOf(shell("true"))).toBe("");
    expect(await replyOf(shell("yes '' | head -c 100000; printf x"))).toBe(`${"\n".repeat(100_000)}x`);
  });

  it("counts its characters as usage if the program reports nothing", async () => {
    const chunks = await collect(shell("printf 12345").run(turnOf(), signal()));
    expect(chunks.at(-1)).toEqual({ usage: { input: 7, output: 2 } });
  });

  it("is complete even if it arrives byte by byte", async () => {
    const program = 'for byte in 303 274 360 237 231 202; do printf "\\\\$byte"; sleep 0.01; done';
    const chunks = await collect(shell(program).run(turnOf(), signal()));
    expect(textOf(chunks)).toBe("ü🙂");
    expect(chunks.filter((chunk) => "text" in chunk).map((chunk) => ("text" in chunk ? chunk.text : ""))).not.toContain(
      "\ufffd",
    );
  });

  it("may be text, usage, model and signs of life, each in a line of JSON", async () => {
    const pieces: unknown[] = [
      { text: "one " },
      { alive: true },
      { model: "small" },
      { text: "two" },
      { usage: { input: 5, output: 2, cached: 3 } },
    ];
    const chunks = await collect(lines(...pieces).run(turnOf(), signal()));
    const usage = { input: 5, output: 2, cached: 3, reasoning: undefined };
    expect(textOf(chunks)).toBe("one two");
    expect(chunks).toContainEqual({ model: "small" });
    expect(chunks).toContainEqual({ alive: true });
    expect(chunks.at(-1)).toEqual({ usage });
  });

  it("may split a character over two pieces", async () => {
    const chunks = await collect(
      lines({ text: "a\ud83d" }, { text: "\ude42b" }, { text: "c\ud83d" }).run(turnOf(), signal()),
    );
    expect(chunks.flatMap((chunk) => ("text" in chunk ? [chunk.text] : []))).toEqual(["a", "🙂b", "c"]);
  });

  it("may lack the end of its last line, and have empty lines", async () => {
    const written = shell(`printf '\\n{"text":"a"}\\r\\n\\n{"text":"b"}'`, { output: "json-lines" });
    expect(await replyOf(written)).toBe("ab");
  });

  it("waits in the program while it is not read", async () => {
    const mark = join(mkdtempSync(join(tmpdir(), "command-")), "mark");
    onTestFinished(() => rmSync(join(mark, ".."), { recursive: true }));
    writeFileSync(mark, "");
    const program = `cat > /dev/null; head -c 4000000 /dev/zero | tr '\\0' x; echo done > ${mark}`;
    const chunks = shell(program).run(turnOf(), signal())[Symbol.asyncIterator]();
    await chunks.next();
    await new Promise((resolve) => setTimeout(resolve, 150));
    expect(readFileSync(mark, "utf8")).toBe("");
    let characters = 0;
    for (let next = await chunks.next(); !next.done; next = await chunks.next())
      if ("text" in (next.value as Chunk)) characters += (next.value as { text: string }).text.length;
    expect(characters).toBeGreaterThan(3_900_000);
    expect(readFileSync(mark, "utf8")).toBe("done\n");
  });
});

describe("a command that", () => {
  const NOT_STARTED = "the agent's program cannot be started";
  const NOT_UTF8 = "the agent's program wrote output that is not UTF-8";
  const NO_JSON = "the agent's program wrote a line that is not JSON";
  const NO_PIECE = "the agent sent data that is not a piece of a reply";
  const output = "json-lines";
  const error = { message: "busy", retryable: true, retryAfterMs: 1234 };
  it.each<[string, ReturnType<typeof commandOf>, string | RegExp]>([
    [
      "exits with 3",
      shell("echo 'at x (/srv/a.js:1)' >&2; exit 3"),
      "the agent's program ended with 3: its standard error is in the gateway's log",
    ],
    [
      "is killed",
      shell("kill -SEGV $$"),
      "the agent's program was ended by SIGSEGV: it wrote nothing to standard error",
    ],
    ["does not exist", commandOf(["no-such-program"]), NOT_STARTED],
    ["may not be run", commandOf(["/etc/passwd"]), NOT_STARTED],
    ["has no folder", shell("true", { cwd: "/no/such" }), NOT_STARTED],
    ["exceeds the limits of the system", commandOf(["true", "x".repeat(3e6)]), NOT_STARTED],
    ["writes invalid UTF-8", shell("printf 'a\\377b'"), NOT_UTF8],
    ["ends inside a character", shell("printf '\\303'"), NOT_UTF8],
    ["writes 100 MB", shell("cat /dev/zero | tr '\\0' x | head -c 100000000"), /more than 16 MiB/],
    ["writes a line without end", shell("cat /dev/zero | tr '\\0' x", { output }), /longer than 1 MiB/],
    ["writes invalid JSON", shell("echo '<html>'", { output }), NO_JSON],
    ["writes half a line of JSON", shell(`printf '{"text":"a'`, { output }), NO_JSON],
    ["writes something else", lines({ words: "a" }), NO_PIECE],
    ["counts wrongly", lines({ usage: { input: -1, output: 2 } }), NO_PIECE],
    ["reports that it failed", lines({ error: { message: "no\u001b[31m such\nmodel" } }), "no such model"],
    ["does not say why", lines({ error: {} }), "the agent failed without a reason"],
  ])("%s fails the turn, with an error for callers", async (_, backend, message) => {
    const error = await failureOf(replyOf(backend));
    expect(error).toBeInstanceOf(BackendError);
    expect(error.message).toMatch(message);
    expect(error.retryable).toBe(false);
  });

  it("exits with 75, or reports that it is busy, can be retried at the requested time", async () => {
    const exited = await failureOf(replyOf(shell("exit 75")));
    expect(exited).toMatchObject({
      message: "the agent's program ended with 75: it wrote nothing to standard error",
      retryable: true,
    });
    expect(await failureOf(replyOf(lines({ error })))).toMatchObject(error);
  });

  it("writes before it fails has its text stored, and its last lines only in the log", async () => {
    const said: { line: string }[] = [];
    const chunks: Chunk[] = [];
    const backend = shell("printf half; printf '\\033[31mno key: \\007sk-1\\n' >&2; exit 4", { said });
    const error = await failureOf(
      (async () => {
        for await (const chunk of backend.run(turnOf(), signal())) chunks.push(chunk);
      })(),
    );
    expect(textOf(chunks)).toBe("half");
    expect(error.message).toBe("the agent's program ended with 4: its standard error is in the gateway's log");
    expect(error.cause).toMatchObject({ message: "no key: sk-1" });
    expect(said).toEqual([{ program: "agents.main", turnId: "turn_1", line: "no key: sk-1" }]);
  });

  it("never reads its turn can answer, however long the turn is", async () => {
    const text = "x".repeat(1_000_000);
    expect(await replyOf(shell("printf unread"), text)).toBe("unread");
    expect(await replyOf(shell("exec 0<&-; sleep 0.05; printf closed"), text)).toBe("closed");
    expect(await replyOf(shell("printf early; cat > /dev/null; printf late"), text)).toBe("earlylate");
  });

  it("fills standard error is not blocked, and is read only up to a limit", async () => {
    const said: { line: string }[] = [];
    expect(await replyOf(shell("yes complaint | head -c 20000000 >&2; printf done", { said }))).toBe("done");
    expect(said.length).toBeGreaterThan(10);
    expect(said.length).toBeLessThan(100);
  });

  it("closes its output and continues is not waited for", async () => {
    const error = await failureOf(replyOf(shell("exec 1>&-; sleep 30")));
    expect(error.message).toBe("the agent's program closed its output but did not exit");
  });
});
