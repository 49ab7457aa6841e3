import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { main, runProcess, startProcess } from "#test/harness/process.ts";
import { agentWith } from "./configs.ts";

describe("a start", () => {
  test("with the memory store logs in one line what will be lost, and which setting prevents it", async () => {
    await using gateway = await startProcess({ config: agentWith({}) });
    const { detail } = await gateway.logged("config.warned");
    expect(detail).toMatch(
      /^store\.type is memory: .*it loses sessions, waiting turns.*API keys.* store: \{ type: "sqlite", path: .*\}\.$/,
    );
    expect(gateway.records.filter(({ event }) => event === "config.warned")).toHaveLength(1);
  });

  test("with SQLite logs no warning", async () => {
    await using gateway = await startProcess({
      config: { ...agentWith({}), store: { type: "sqlite", path: "./gateway.db" } },
    });
    gateway.kill("SIGTERM");
    expect(await gateway.exited).toEqual({ code: 0, signal: null });
    expect(gateway.records.map(({ event }) => event)).not.toContain("config.warned");
  });

  test("with a database that does not answer is refused with an error message, without its password", async () => {
    const url = "postgres://gateway:a%20good%20secret@127.0.0.1:1/gateway";
    const { code, out, err } = await runProcess({ config: { ...agentWith({}), store: { type: "postgres", url } } });
    expect(code).toBe(1);
    expect(err).toMatch(
      /^The store cannot be opened: The database does not answer \(127\.0\.0\.1:1\/gateway: .*\)\.\nNext: /,
    );
    expect(out + err).not.toMatch(/a(%20| )good/);
  });

  test("with a folder in the place of the file is refused with an error message", async () => {
    const { code, err } = await runProcess({ config: { ...agentWith({}), store: { type: "sqlite", path: "/" } } });
    expect(code).toBe(1);
    expect(err).toMatch(/^The store cannot be opened: .*\nNext: node \S*main\.js serve --help$/);
  });
});

describe("backup refuses with an error message", () => {
  const backup = (args: readonly string[], config: object = agentWith({})) =>
    runProcess({ config, command: () => [process.execPath, main, "backup", ...args] });

  test.each([
    [["gateway.json5"], "gateway.json5 already exists"],
    [["copy.db"], "The store is memory, which this does not copy"],
    [["copy.db", "--store", "nothing.db"], "nothing.db does not exist"],
  ])("%j", async (args, sentence) => {
    const { code, err } = await backup(args);
    expect(err).toContain(sentence);
    expect([code, err.split("\n").slice(1)]).toEqual([1, [`Next: node ${main} backup --help`]]);
  });

  test.each([
    [[], "The argument <to> is missing: the new file."],
    [["copy.db", "more.db"], "Too many arguments"],
    [["copy.db", "--stoer", "x"], "Unknown option '--stoer'. Did you mean --store?"],
  ])("%j, which is wrong usage", async (args, sentence) => {
    const { code, err } = await backup(args);
    expect(err).toContain(sentence);
    expect(code).toBe(2);
  });

  test("a missing configuration", async () => {
    const cwd = mkdtempSync(join(tmpdir(), "gateway-backup-"));
    onTestFinished(() => rmSync(cwd, { recursive: true }));
    const command = () => [process.execPath, main, "backup", "copy.db"];
    const { code, err } = await runProcess({ cwd, command });
    expect(err).toMatch(
      /^This folder has no gateway\.json5 that names the store\. Use --config or --store to name the file\.\n/,
    );
    expect(code).toBe(1);
  });

  test("a file that is not a store, and leaves no file", async () => {
    await using gateway = await startProcess({ config: agentWith({}) });
    writeFileSync(
      join(gateway.folder, "other.db"),
      "this is no database, but a text that is long enough to look at".repeat(40),
    );
    const { folder: cwd } = gateway;
    const command = () => [process.execPath, main, "backup", "copy.db", "--store", "other.db"];
    const { code, err } = await runProcess({ cwd, command });
    expect(err).toMatch(/other\.db cannot be copied: .*\.\n/);
    expect(code).toBe(1);
    expect(readdirSync(cwd).filter((name) => name.startsWith("copy.db"))).toEqual([]);
  });
});
