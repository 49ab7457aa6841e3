import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { describe, expect, test } from "vitest";
import { main, type ProcessOptions, runProcess } from "#test/harness/process.ts";

describe("refuses wrong usage with a sentence, no stack, and exit code 2", () => {
  test.each<[string, string, RegExp]>([
    [
      "an unknown option",
      "--prot 80",
      /^Unknown option '--prot'\. Did you mean --port\?\nNext: node \S*main\.js serve --help$/,
    ],
    [
      "an unknown option of a command",
      "backup --stor a.db b.db",
      /^Unknown option '--stor'\. Did you mean --store\?\n/,
    ],
    ["an option without its value", "serve --config", /^Option '--config <file>' argument missing\.\n/],
    ["a stray word", "stray", /^There is no command stray\.\nNext: node \S*main\.js --help$/],
    ["an unknown command", "bakcup b.db", /^There is no command bakcup\. Did you mean backup\?\n/],
    ["an invalid port", "--port 80a", /^--port 80a is not a port: give a whole number from 0 to 65535\.\n/],
  ])("%s", async (_, typed, sentence) => {
    const { code, out, err } = await runProcess({
      command: ([node = "", main = ""]) => [node, main, ...typed.split(" ")],
    });
    expect(err).toMatch(sentence);
    expect({ out, code }).toEqual({ out: "", code: 2 });
  });

  test.each([
    [
      "a log level",
      { LOG_LEVEL: "loud" },
      `LOG_LEVEL is loud: give debug, info, warn or error.\nNext: node ${main} serve --help`,
    ],
    ["a log format", { LOG_FORMAT: "xml" }, `LOG_FORMAT is xml: give json or pretty.\nNext: node ${main} serve --help`],
  ])("%s that is not valid", async (_, env, sentence) => {
    expect(await runProcess({ env })).toMatchObject({ code: 2, err: sentence, out: "" });
  });
});

describe("refuses to start with a sentence, no stack, and exit code 1", () => {
  test.each<[string, ProcessOptions, RegExp]>([
    [
      "an address of another machine",
      { args: ["--host", "192.0.2.1"] },
      /^192\.0\.2\.1 is not an address of this machine\. Choose another with --host\.$/,
    ],
    [
      "a missing file",
      { args: ["--config", "nowhere.json5"] },
      /nowhere\.json5: the file cannot be read: it does not exist/,
    ],
    [
      "an unknown key",
      { config: '{\n  agents: { main: { backend: "echo" } },\n  webhook: {},\n}' },
      /gateway\.json5:3:3: webhook is not a key of the configuration; did you mean `webhooks`\?/,
    ],
  ])("%s", async (_, options, sentence) => {
    const { code, out, err } = await runProcess(options);
    expect(err).toMatch(new RegExp(sentence.source, "m"));
    expect(err).not.toMatch(/^\s+at |node:internal|\.js:\d/m);
    expect(out).toBe("");
    expect(code).toBe(1);
  });

  test("a port in use", async () => {
    const taken = createServer().listen(0, "127.0.0.1");
    await once(taken, "listening");
    const { port } = taken.address() as AddressInfo;
    const { code, err } = await runProcess({ args: ["--port", String(port)] });
    taken.close();
    const sentence = `Port ${port} of 127.0.0.1 is in use. Stop what listens there, or choose another with --port.`;
    expect(err).toBe(`${sentence}\nNext: node ${main} serve --help`);
    expect(code).toBe(1);
  });
});

test.each(["-h", "--help", "serve -h", "serve --help", "backup -h", "backup --help"])(
  "%s prints the help and exits with 0",
  async (asked) => {
    const help = await runProcess({ command: ([node = "", main = ""]) => [node, main, ...asked.split(" ")] });
    expect(help).toMatchObject({ code: 0, err: "" });
    expect(help.out).toContain(
      `Usage: agent-gateway ${asked.startsWith("-") ? "[options] [command]" : `${asked.split(" ")[0]} [options]`}`,
    );
    expect(help.out).toContain("-h, --help");
  },
);

test("--version prints and exits with 0", async () => {
  const version = await runProcess({ command: ([node = "", main = ""]) => [node, main, "--version"] });
  expect(version).toMatchObject({ code: 0, err: "" });
  expect(version.out).toMatch(/^\d+\.\d+\.\d+$/);
});
