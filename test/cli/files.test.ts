import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { emptyFolder } from "./cli.ts";
import { printed } from "./in-process.ts";

/** A path that cannot be read as a configuration or a file of variables, and the reason. */
const BAD: [string, (path: string) => void, string][] = [
  ["a device that never ends", (path) => symlinkSync("/dev/zero", path), "it is not a regular file"],
  ["a pipe that nothing writes to", (path) => void spawnSync("mkfifo", [path]), "it is not a regular file"],
  ["a folder", (path) => mkdirSync(path), "it is a folder"],
  [
    "a file of 100 GB",
    (path) => {
      writeFileSync(path, "");
      truncateSync(path, 1e11);
    },
    "is larger than",
  ],
];

describe.each(BAD)("%s is reported", (_, make, reason) => {
  test("in the place of a configuration", async () => {
    const folder = emptyFolder();
    const config = join(folder, "gateway.json5");
    make(config);
    for (const args of [
      ["check", config],
      ["serve", "--config", config],
      ["backup", join(folder, "copy.db"), "--config", config],
      ["migrate", "--config", config],
      ["turns", "list", "--config", config],
    ]) {
      const { out, err, code } = await printed(args);
      expect([out, code]).toEqual(["", expect.any(Number)]);
      expect(err).toContain(reason);
      expect(err).toContain("gateway.json5");
    }
  });

  test("in the place of gateway.env", async () => {
    const folder = emptyFolder();
    const config = join(folder, "gateway.json5");
    writeFileSync(config, '{ agents: { main: { backend: "echo" } } }');
    make(join(folder, "gateway.env"));
    for (const args of [
      ["check", config],
      ["serve", "--config", config],
      ["backup", join(folder, "copy.db"), "--config", config],
    ]) {
      const { err } = await printed(args);
      expect(err).toMatch(/gateway\.env: the file cannot be read: it is .*\.\n/);
    }
  });
});

test("a file that is nested too deeply is reported without a position", async () => {
  const file = join(emptyFolder(), "deep.json5");
  writeFileSync(file, "[".repeat(100_000));
  const { err } = await printed(["check", file]);
  expect(err).toContain("deep.json5: the file is nested too deeply");
  expect(err).not.toContain("undefined");
});

describe("init", () => {
  const choose = "Next: choose another folder: npx agent-gateway init FOLDER";
  const init = async (folder: string) => {
    const { out, err, code } = await printed(["init", folder, "--yes"]);
    expect([out, code]).toEqual(["", 1]);
    return err.replaceAll(/Next: choose another folder: .* init FOLDER/g, choose).replaceAll(folder, "FOLDER");
  };

  test("refuses a file in place of a folder, and a path through a file", async () => {
    const file = join(emptyFolder(), "afile");
    writeFileSync(file, "");
    expect(await init(file)).toBe(`FOLDER is not a folder.\n${choose}\n`);
    expect(await init(join(file, "x"))).toBe(
      `The folder FOLDER cannot be created: a part of its path is not a folder.\n${choose}\n`,
    );
    expect(await init("/proc/x/y")).toMatch(/^The folder FOLDER cannot be created: .*\.\nNext: choose another folder/);
  });

  test("refuses a link to a file that does not exist", async () => {
    const folder = emptyFolder();
    symlinkSync(join(folder, "nowhere"), join(folder, "gateway.json5"));
    expect(await init(folder)).toBe(`FOLDER/gateway.json5 already exists, and nothing is overwritten.\n${choose}\n`);
    expect(readdirSync(folder)).toEqual(["gateway.json5"]);
  });

  test("leaves no file if a file cannot be written, and succeeds after that", async () => {
    const folder = emptyFolder();
    const ignored = join(folder, ".gitignore");
    mkdirSync(ignored);
    expect(await init(folder)).toBe(`FOLDER/.gitignore cannot be written: it is a folder.\n${choose}\n`);
    expect(readdirSync(folder)).toEqual([".gitignore"]);
    const other = emptyFolder();
    expect((await printed(["init", other, "--yes"])).code).toBe(undefined);
    expect(readdirSync(other).sort()).toEqual([".gitignore", "gateway.env", "gateway.json5"]);
  });
});

test("a partially written file is deleted", async () => {
  const { writeNew } = await import("#cli/diagnostics.ts");
  const file = join(emptyFolder(), "bundle.json");
  const text = { toString: () => "" } as unknown as string; // Node refuses it after the file is open, as a full disk does.
  expect(() => writeNew(file, text, 0o600)).toThrow(/bundle\.json cannot be written/);
  expect(existsSync(file)).toBe(false);
});

test.each(["file:zz.db?a=", "file:copy.db", ":memory:"])("backup to %s makes a file of that name", async (name) => {
  const cwd = emptyFolder();
  const { openDriver } = await import("#store/sqlite/file.ts");
  const driver = openDriver(join(cwd, "file:store.db"));
  driver.exec("CREATE TABLE meta (name TEXT, value TEXT)");
  driver.close();
  const before = process.cwd();
  const { backup } = await import("#cli/backup.ts");
  try {
    process.chdir(cwd);
    expect(await backup(name, { store: "file:store.db" }, {})).toContain(`${join(cwd, name)} is a copy of the store`);
  } finally {
    process.chdir(before);
  }
  expect(readdirSync(cwd)).toContain(name);
});

test.skipIf(!existsSync("/dev/full"))("a full disk at standard output is reported (needs /dev/full)", async () => {
  const { main } = await import("#test/harness/process.ts");
  const { stderr, status } = spawnSync("sh", ["-c", `"$0" "$1" help > /dev/full`, process.execPath, main], {
    encoding: "utf8",
    cwd: emptyFolder(),
  });
  expect([stderr, status]).toEqual(["The output cannot be written: the disk is full.\n", 1]);
});

test("a token that HTTP cannot carry is refused before anything is sent", async () => {
  const url = ["--url", "http://127.0.0.1:2"];
  const next = "Next: check that it is the whole token, and only that\n";
  const words = (name: string) => `${name} holds a character that HTTP cannot carry in a header.\n${next}`;
  const sent = async (...args: string[]) => await printed([...args, ...url]);
  expect(await sent("skills", "list", "--key", "é€")).toEqual({ out: "", err: words("The key of --key"), code: 2 });
  expect((await sent("agents", "list", "--rpc-token", "a\nb")).err).toBe(words("The token of --rpc-token"));
  expect((await sent("skills", "list", "--webhook-token", "€")).err).toBe(words("The token of --webhook-token"));
});

test.each([
  ["turns", "cancel", "."],
  ["keys", "revoke", "..", "--yes"],
  ["agents", "pause", ".."],
])("%s %s %s is refused", async (...args) => {
  const { err, code } = await printed([...args, "--url", "http://127.0.0.1:2", "--key", "key-of-test"]);
  expect([err, code]).toEqual([
    expect.stringMatching(/^"\.\.?" cannot be a part of a path: pass an id or a name\.\n/),
    2,
  ]);
});
