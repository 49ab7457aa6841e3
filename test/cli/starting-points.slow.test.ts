import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { emptyFolder, runCli, startCli } from "./cli.ts";

/** Replaces a text of a file, which must have it. */
function change(file: string, from: string, to: string): void {
  const text = readFileSync(file, "utf8");
  expect(text).toContain(from);
  writeFileSync(file, text.replace(from, to));
}

/** Starts the gateway of a folder, and puts its free port into the file, for the commands. */
async function serve(cwd: string): Promise<void> {
  const serving = startCli(["serve"], { cwd });
  await serving.until(({ out }) => out.includes("listening"));
  const [url = ""] = /http:\/\/127\.0\.0\.1:\d+/.exec(serving.result.out) ?? [];
  change(join(cwd, "gateway.json5"), "port: 0", `port: ${new URL(url).port}`);
}

/** The command that init prints for a first try, in the words of a shell. */
function trialOf(printed: string): string[] {
  const commands = [...printed.matchAll(/^ {2}agent-gateway (.*)$/gm)].map(([, words = ""]) => words);
  expect([commands[0], commands[2]]).toEqual(["serve", "open"]);
  return (commands[1] ?? "").split(" ");
}

async function reply(cwd: string, turnId: string): Promise<string> {
  const { code, out, err } = await runCli(["turns", "show", turnId, "--follow"], { cwd });
  expect([code, err]).toEqual([0, expect.any(String)]);
  return out;
}

describe("a configuration of init that starts from a template is valid, runs, and its printed command works", () => {
  test("a GitHub review bot: one conversation and one turn for the pushes to a pull request", async () => {
    const cwd = emptyFolder();
    const written = await runCli(["init", "--template", "github-review", "--port", "0", "--yes"], { cwd });
    expect(written.code).toBe(0);
    expect(written.err).toMatch(
      /Then, for real use:\n- .*GITHUB_SECRET.*\n- .*full_name.*\n- .*channels.*\n- .*backend/,
    );
    expect(await runCli(["check"], { cwd })).toMatchObject({ code: 0, out: expect.stringContaining("is valid") });
    await serve(cwd);
    const trial = trialOf(written.err);
    const first = await runCli([...trial, "--json"], { cwd });
    const second = await runCli([...trial, "--json"], { cwd });
    expect([first.code, first.err]).toEqual([0, ""]);
    const { turnId, sessionId } = JSON.parse(first.out);
    expect(sessionId).toBe("webhook:pr:ada~2fclock:7");
    expect(JSON.parse(second.out)).toMatchObject({ turnId, sessionId, coalesced: true });
    expect(await reply(cwd, turnId)).toContain("Review pull request 7 of ada/clock by ada: Ring on the hour");
  });

  test("a daily brief, with the time zone of the machine", async () => {
    const cwd = emptyFolder();
    const env = { TZ: "Europe/Berlin" };
    const written = await runCli(["init", "--template", "daily-brief", "--port", "0", "--yes"], { cwd, env });
    expect(written.code).toBe(0);
    expect(written.err).toMatch(/Then, for real use:\n- .*timeZone.*\n- .*channels.*\n- .*backend/);
    expect(readFileSync(join(cwd, "gateway.json5"), "utf8")).toContain('timeZone: "Europe/Berlin"');
    expect(await runCli(["check"], { cwd })).toMatchObject({ code: 0, out: expect.stringContaining("is valid") });
    await serve(cwd);
    const ran = await runCli([...trialOf(written.err), "--json"], { cwd });
    expect([ran.code, ran.err]).toEqual([0, ""]);
    expect(await reply(cwd, JSON.parse(ran.out).turn_id)).toContain("Write the brief of today.");
  });
});

describe("the optional lines of a template are valid too", () => {
  test.each(["github-review", "daily-brief"])("of %s", async (template) => {
    const cwd = emptyFolder();
    expect((await runCli(["init", "--template", template, "--yes"], { cwd })).code).toBe(0);
    const file = join(cwd, "gateway.json5");
    const optional = readFileSync(file, "utf8").replaceAll(/^( +)\/\/ (?=["a-zA-Z.]+: )/gm, "$1");
    expect(optional).toContain('channels: { team: { type: "slack"');
    writeFileSync(file, optional);
    writeFileSync(join(cwd, "gateway.env"), "SLACK_WEBHOOK_URL=https://hooks.slack.com/services/T0/B0/x\n", {
      flag: "a",
    });
    expect(await runCli(["check"], { cwd })).toMatchObject({ code: 0, out: expect.stringContaining("is valid") });
  });
});

test("init overwrites no sample, and asks where to start on a terminal", async () => {
  const cwd = emptyFolder();
  writeFileSync(join(cwd, "pull-request.json"), "mine");
  expect(await runCli(["init", "--template", "github-review", "--yes"], { cwd })).toMatchObject({
    code: 1,
    err: expect.stringContaining("pull-request.json already exists, and nothing is overwritten."),
  });
  expect(existsSync(join(cwd, "gateway.env"))).toBe(false);
  const asking = startCli(["init", "--backend", "echo", "--agent", "main", "--store", "memory"], {
    cwd,
    terminal: true,
  });
  await asking.until(({ out }) => out.includes("A daily brief"));
  asking.type("\u001b[B\u001b[B\r");
  await asking.until(({ out }) => out.includes("Which port?"));
  asking.type("\r");
  expect(await asking.ended).toMatchObject({ code: 0 });
  expect(readFileSync(join(cwd, "gateway.json5"), "utf8")).toContain("schedules: {");
});

test("init asks again for a name, an address or a port that is not valid, and refuses given ones before it asks", async () => {
  const cwd = emptyFolder();
  const asking = startCli(["init", "--template", "empty", "--backend", "http", "--store", "memory"], {
    cwd,
    terminal: true,
    columns: 0,
  });
  for (const [question, wrong, words, right] of [
    ["What is the agent called?", "Bad Name!", "is not a valid name", "clock"],
    ["Its address", "nowhere", "is not an address", "http://127.0.0.1:1/turn"],
    ["Which port?", "99999", "is not a port", "0"],
  ] as const) {
    await asking.until(({ out }) => out.includes(question));
    asking.type(`${wrong}\r`);
    await asking.until(({ out }) => out.includes(words));
    asking.type(`${"\u007f".repeat(wrong.length)}${right}\r`);
  }
  expect(await asking.ended).toMatchObject({ code: 0 });
  expect(readFileSync(join(cwd, "gateway.json5"), "utf8")).toMatch(/port: 0,[\s\S]*clock: \{/);
  const given = startCli(["init", "other", "--port", "99999"], { cwd, terminal: true });
  expect(await given.ended).toMatchObject({ code: 2, out: expect.not.stringContaining("Start from") });
});
