import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type ProcessOptions, runProcess, startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";
import { agentWith, key } from "./configs.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "gateway-configs-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A configuration whose agents have this name, in a file of its own. */
const fileWith = (agent: string): string => {
  const path = join(folder, `${agent}.json5`);
  const { gateway } = agentWith({});
  writeFileSync(path, JSON.stringify({ gateway, agents: { [agent]: { backend: "echo" } } }));
  return path;
};

describe("finds its configuration", () => {
  /** Whose agents answer. */
  const agentOf = async (options: ProcessOptions): Promise<string | undefined> => {
    await using gateway = await startProcess(options);
    const rest = createRest(gateway.url, gateway.secrets.REST_API_KEY ?? key);
    const answers = ["here", "named", "env", "main"].map(async (agent) => {
      const { status } = await rest.call("chat.send", { body: { message: "Hi", agent } });
      return status === 200 ? agent : undefined;
    });
    return (await Promise.all(answers)).find((agent) => agent !== undefined);
  };
  const here = { gateway: agentWith({}).gateway, agents: { here: { backend: "echo" } } };

  test("by --config first, then $GATEWAY_CONFIG, then ./gateway.json5, else it is a try-out", async () => {
    const named = ["--config", fileWith("named")];
    const env = { GATEWAY_CONFIG: fileWith("env") };
    expect(
      await Promise.all([
        agentOf({ args: named, env, config: here }),
        agentOf({ env, config: here }),
        agentOf({ config: here }),
        agentOf({}),
      ]),
    ).toEqual(["named", "env", "here", "main"]);
  });
});

describe("listens", () => {
  const config = { ...agentWith({}), gateway: { ...agentWith({}).gateway, host: "127.0.0.3", port: 1 } };
  /** Without the `--port 0` that every other test has. */
  const bare = (...args: string[]): ProcessOptions["command"] => {
    return (usual) => [...usual.slice(0, usual.indexOf("--port")), ...args];
  };

  test("where --host and --port say, else $GATEWAY_HOST and $GATEWAY_PORT, else the file; an empty variable is none", async () => {
    const env = { GATEWAY_HOST: "127.0.0.4", GATEWAY_PORT: "0" };
    await using byFlags = await startProcess({
      config,
      env: { ...env, GATEWAY_PORT: "1" },
      command: bare("--host", "127.0.0.5", "--port", "0"),
    });
    expect(byFlags.url).toMatch(/^http:\/\/127\.0\.0\.5:\d{4,}$/);
    await using byEnv = await startProcess({ config, env, command: bare() });
    expect(byEnv.url).toMatch(/^http:\/\/127\.0\.0\.4:\d{4,}$/);
    const fromFile = { ...config, gateway: { ...config.gateway, port: 0 } };
    const empty = { GATEWAY_HOST: "", GATEWAY_PORT: "", GATEWAY_CONFIG: "", LOG_LEVEL: "", LOG_FORMAT: "" };
    await using byFile = await startProcess({ config: fromFile, env: empty, command: bare() });
    expect(byFile.url).toMatch(/^http:\/\/127\.0\.0\.3:\d{4,}$/);
  });
});

describe("refuses to start with a sentence, no stack, and exit code 1", () => {
  const agents = { main: { backend: "echo" } };

  test.each<[string, ProcessOptions, RegExp]>([
    [
      "an unknown option",
      { args: ["--prot", "80"] },
      /^There is no option --prot\. Did you mean --port\? There are: --config, --host, --port, --version, --help\.$/,
    ],
    [
      "an unknown option of a command",
      { command: ([node = "", main = ""]) => [node, main, "backup", "--stor", "a.db", "b.db"] },
      /^There is no option --stor\. Did you mean --store\? There are: --config, --store, --help\.$/,
    ],
    ["an option without its value", { args: ["--config"] }, /--config.*--help lists the options\.$/],
    ["a stray word", { args: ["stray"] }, /stray.*--help lists the options\.$/],
    [
      "an unknown command",
      { command: ([node = "", main = ""]) => [node, main, "bakcup", "b.db"] },
      /^There is no command bakcup\. Did you mean backup\? There are: serve, backup\. --help tells more\.$/,
    ],
    [
      "a port that is none",
      { args: ["--port", "80a"] },
      /^--port 80a is no port: give a whole number from 0 to 65535\.$/,
    ],
    ["a port out of range", { args: ["--port", "65536"] }, /^--port 65536 is no port/],
    [
      "a port in the environment that is none",
      { env: { GATEWAY_PORT: "x" }, command: (usual) => usual.slice(0, -2) },
      /GATEWAY_PORT is no port/,
    ],
    [
      "an address of another machine",
      { args: ["--host", "192.0.2.1"] },
      /^192\.0\.2\.1 is no address of this machine\. Choose another with --host\.$/,
    ],
    [
      "a log level that is none",
      { env: { LOG_LEVEL: "loud" } },
      /^LOG_LEVEL is loud: give debug, info, warn or error\.$/,
    ],
    ["a log format that is none", { env: { LOG_FORMAT: "xml" } }, /^LOG_FORMAT is xml: give json or pretty\.$/],
    [
      "a file that is not there",
      { args: ["--config", "nowhere.json5"] },
      /nowhere\.json5: the file cannot be read: it is not there/,
    ],
    ["broken syntax", { config: "{\n  agents: {\n    main: [\n}" }, /gateway\.json5:4:1: /],
    [
      "an unknown key",
      { config: '{\n  agents: { main: { backend: "echo" } },\n  webhook: {},\n}' },
      /gateway\.json5:3:3: webhook is no key of the configuration; did you mean `webhooks`\?/,
    ],
    [
      "a variable that is not set",
      { config: { gateway: { console: { token: `\${NOT_SET_ANYWHERE}` } }, agents } },
      /gateway\.json5:\d+:\d+: gateway\.console\.token .*NOT_SET_ANYWHERE/,
    ],
    [
      "a surface that nobody could enter",
      { config: { agents, gateway: { rest: { enabled: true } } } },
      /gateway\.rest\.enabled is true, but there is no key/,
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
    expect(err).toBe(`Port ${port} of 127.0.0.1 is in use. Stop what listens there, or choose another with --port.`);
    expect(code).toBe(1);
  });
});

test("a folder in the place of its file is refused by what it is", async () => {
  const path = join(folder, "folder.json5");
  mkdirSync(path);
  const { code, err } = await runProcess({ args: ["--config", path] });
  expect(err).toContain("the file cannot be read: it is a folder. Name the file in it.");
  expect(code).toBe(1);
});

test.each(["-h", "--help", "serve -h", "serve --help", "backup -h", "backup --help"])(
  "%s prints the help and ends with 0",
  async (asked) => {
    const help = await runProcess({ command: ([node = "", main = ""]) => [node, main, ...asked.split(" ")] });
    expect(help).toMatchObject({ code: 0, err: "" });
    expect(help.out).toContain(
      asked.startsWith("backup") ? "Usage: npm start -- backup TO" : "Usage: npm start -- [serve]",
    );
    expect(help.out).toContain("-h, --help");
  },
);

test("--help and --version print and end with 0", async () => {
  const help = await runProcess({ args: ["--help"] });
  expect(help).toMatchObject({ code: 0, err: "" });
  for (const option of ["--config", "--host", "--port", "--version", "--help"]) expect(help.out).toContain(option);
  const version = await runProcess({ args: ["--version"] });
  expect(version).toMatchObject({ code: 0, err: "" });
  expect(version.out).toMatch(/^\d+\.\d+\.\d+$/);
});
