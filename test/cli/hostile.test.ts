import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { everyCommand, nameOf } from "#cli/command-tree.ts";
import { createProgram } from "#cli/run.ts";
import { visible } from "#kit/visible.ts";
import { emptyFolder, startCli } from "./cli.ts";
import { callsOf, id } from "./every-call.ts";
import { type Attack, type Mode, startHostileGateway } from "./hostile-gateway.ts";
import { captured, printed } from "./in-process.ts";

/** The characters that control a terminal or change the writing direction. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is what must not come
const STEERING = /[\x00-\x08\x0b-\x1f\x7f-\x9f]|\p{Bidi_Control}/u;
// biome-ignore lint/suspicious/noControlCharactersInRegex: that is how a style begins
const STYLES = /\x1b\[\d+m/g;

const folder = emptyFolder(afterAll);
function file(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}
const payload = file("payload.json", '{"status":"firing"}');
const CALLS = callsOf(payload);

/** Commands that print no text of a gateway, with hostile text as an argument or in a file. */
const LOCAL: Record<string, (text: string) => string[]> = {
  serve: (text) => ["--config", join(folder, text)],
  init: (text) => [join(payload, text), "--yes"],
  check: (text) => [
    file("hostile.json5", `{ ${JSON.stringify(text)}: 1, agents: { main: { backend: ${JSON.stringify(text)} } } }`),
  ],
  backup: (text) => [join(folder, text), "--store", text],
  migrate: (text) => ["--config", text],
  mock: (text) => ["--port", text],
  completion: (text) => [text],
  help: (text) => [text],
  chat: (text) => ["main", `--un${text}`],
  mcp: (text) => [`--un${text}`],
};

/** Commands that do not retry after an answer that cannot be read, and so need no pause here. */
const ONCE = ["health", "doctor", "api", "diagnostics"];

/** Without our styles, and without the time of day. */
function settled({ out, err }: { out: string; err: string }): string[] {
  return [out, err].map((text) => text.replace(STYLES, "").replace(/"at": "[^"]+"|\d\d:\d\d:\d\d/, ""));
}

const attacks = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "\u001b[31m",
        "\u001b]0;owned\u0007",
        "\u001b]52;c;Y3VybA==\u001b\\",
        "\u009b2J",
        "\u009d0;x\u009c",
      ),
      fc.constantFrom("\r", "\b\b\b", "\u007f", "\u202e", "\u2066", "\u200f", "\u061c", "\u0000", "\n", "\ud800"),
      fc.string({ unit: "binary", maxLength: 20 }),
    ),
    { minLength: 1, maxLength: 4 },
  )
  .map((parts) => parts.join(""));
const attack = fc.record({
  mode: fc.constantFrom<Mode>("answers", "answers", "refuses", "babbles"),
  keepsFirst: fc.boolean(),
  texts: fc.array(attacks, { minLength: 1, maxLength: 7 }),
});

const plain: Attack = { mode: "answers", keepsFirst: true, texts: ["\u001b[31mred\u001b[0m\u009b2J\u202e\r\u0007"] };

describe("no text of a gateway controls the terminal", async () => {
  const gateway = await startHostileGateway(afterAll);
  const tokens = [
    "--url",
    gateway.url,
    "--key",
    "key-of-test",
    "--rpc-token",
    "rpc-of-test",
    "--webhook-token",
    "hook-of-test",
  ];

  test("every command is tested", () => {
    const all = [...everyCommand(createProgram())]
      .filter(({ commands, parent }) => parent !== null && commands.length === 0)
      .map((command) => nameOf(command).replace("agent-gateway ", ""));
    expect([...Object.keys(CALLS), ...Object.keys(LOCAL)].sort()).toEqual(all.sort());
  });

  const calls = Object.entries(CALLS).flatMap(([command, each]) =>
    each.map((call) => {
      const typed = [...command.split(" "), ...call];
      return [typed.join(" ").replace(folder, ""), typed] as const;
    }),
  );

  test.each(calls)("%s", async (_, call) => {
    const asked = async (given: Attack, ...how: string[]) => {
      gateway.set(given);
      return await printed([...call, ...how, ...tokens]);
    };
    await fc.assert(
      fc.asyncProperty(attack, fc.constantFrom([], [], ["--json"], ["-q"]), async (given, how) => {
        const mode = given.mode === "babbles" && !ONCE.includes(call[0] ?? "") ? "refuses" : given.mode;
        const { out, err } = await asked({ ...given, mode }, ...how);
        expect(out).not.toMatch(STEERING);
        expect(err).not.toMatch(STEERING);
      }),
      { numRuns: 6, examples: [[{ mode: "refuses", keepsFirst: false, texts: ["valueOf", "a"] }, []]] },
    );
    if (call[0] === "open") return; // On a terminal it opens a browser.
    // Only our own styles are added on a terminal, compared with a pipe.
    const piped = await asked(plain);
    process.stdout.isTTY = true;
    const shown = await asked(plain).finally(() => (process.stdout.isTTY = false));
    expect(settled(shown)).toEqual(settled(piped));
  });

  test("JSON output is the same as the answer", async () => {
    for (const call of [
      ["agents", "list"],
      ["turns", "show", `turn_${id}`],
      ["sessions", "show", "agent:main:main"],
    ]) {
      gateway.set(plain);
      const { out } = await printed([...call, "--json", ...tokens]);
      const answer = gateway.answered() as { result?: unknown };
      expect(JSON.parse(out)).toEqual(answer.result ?? answer);
      expect(out).toContain("\\u001b[31mred\\u001b[0m\\u009b2J\\u202e\\r\\u0007");
    }
  });

  test("a curl command is printed in a form to paste, with control characters in the shell's own escapes", async () => {
    gateway.set(plain);
    const { out } = await printed(["deliveries", "curl", `dlv_${id}`, ...tokens]);
    expect(out).toContain("\\033[31mred");
    expect(out).not.toContain("\\u");
  });

  test("a reply in pieces controls nothing, even if an escape sequence or a line break is split over two", async () => {
    const { printPieces } = await import("#cli/terminal.ts");
    const pieces = fc.array(fc.oneof(attacks, fc.constantFrom("\r", "\n", "\ud83d", "\ude00", "\u001b", "[31m")));
    await fc.assert(
      fc.asyncProperty(pieces, async (given) => {
        const { out } = await captured(() =>
          printPieces(
            (async function* () {
              yield* given;
            })(),
          ),
        );
        const whole = visible(given.join(""));
        expect(out).toBe(whole === "" || whole.endsWith("\n") ? whole : `${whole}\n`);
        expect(out).not.toMatch(STEERING);
      }),
    );
  });
});

test.each(Object.entries(LOCAL))(
  "%s prints no control character of its arguments or files",
  async (command, argsOf) => {
    await fc.assert(
      fc.asyncProperty(attacks, async (text) => {
        const { out, err } = await printed([command, ...argsOf(text.replaceAll("\0", ""))]);
        expect(out + err).not.toMatch(STEERING);
        expect(out + err).not.toBe("");
      }),
      { numRuns: 20 },
    );
  },
);

test("serve escapes the control characters of a folder's name and a stranger's request", async () => {
  const cwd = join(folder, "\u001b[2J\u009b31m\u202e");
  mkdirSync(cwd);
  const serving = startCli(["serve", "--port", "0"], {
    cwd,
    env: { LOG_LEVEL: "debug", NO_COLOR: "1" },
    terminal: true,
  });
  await serving.until(({ out }) => out.includes(" listening "));
  const [url = ""] = /http:\/\/127\.0\.0\.1:\d+/.exec(serving.result.out) ?? [];
  await fetch(`${url}/api/v1/%1b[31m%C2%9b2J%E2%80%AE`, { headers: { "user-agent": "\u009b31m" } });
  await serving.until(({ out }) => out.includes(" request "));
  // Closing its terminal would not end it.
  serving.type("\u0003");
  await serving.ended;
  expect(serving.result.out).toContain("\\u001b[2J\\u009b31m\\u202e");
  // The terminal itself ends lines with a carriage return.
  expect(serving.result.out.replaceAll("\r\n", "\n")).not.toMatch(STEERING);
});
