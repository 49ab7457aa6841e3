import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { emptyFolder, runCli } from "./cli.ts";

test("prints its version", async () => {
  expect(await runCli(["--version"])).toEqual({ code: 0, out: `${manifest.version}\n`, err: "" });
});

test("suggests the intended command", async () => {
  const { code, out, err } = await runCli(["sesions"]);
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toBe("There is no command sesions. Did you mean sessions?\nNext: agent-gateway --help\n");
});

test.each([
  [["help"], ["--help"]],
  [
    ["help", "send"],
    ["send", "--help"],
  ],
  [
    ["help", "keys", "create"],
    ["keys", "create", "--help"],
  ],
])("%j prints what %j prints", async (args, option) => {
  const help = await runCli(args);
  expect(help).toEqual(await runCli(option));
  expect(help).toMatchObject({ code: 0, out: expect.stringContaining("Usage: agent-gateway"), err: "" });
});

test("help suggests the intended command", async () => {
  expect(await runCli(["help", "keys", "creat"])).toEqual({
    code: 2,
    out: "",
    err: "There is no command keys creat. Did you mean create?\nNext: agent-gateway keys --help\n",
  });
});

test("suggests the intended option, and the help that lists all", async () => {
  const { code, err } = await runCli(["sessions", "list", "--agnt", "main"]);
  expect(code).toBe(2);
  expect(err).toBe("Unknown option '--agnt'. Did you mean --agent?\nNext: agent-gateway sessions list --help\n");
});

test("says which token a call needs, and where to set it", async () => {
  const { code, err } = await runCli(["sessions", "list"]);
  expect(code).toBe(4);
  expect(err).toContain("This call needs an RPC token. Pass --rpc-token, or set RPC_TOKEN.");
});

test.each([
  [
    ["send", "main"],
    "The argument <text> is missing: the message; @FILE for the text of a file, - for standard input.\nNext: agent-gateway send <agent> <text>\n",
  ],
  [
    ["send", "main", "x", "--strem"],
    "Unknown option '--strem'. Did you mean --no-stream?\nNext: agent-gateway send --help\n",
  ],
  [
    ["health", "--timeout", "soon"],
    "--timeout soon is not a whole number of at least 1.\nNext: agent-gateway health --help\n",
  ],
  [
    ["call", "rpc.subscribe"],
    "rpc.subscribe works only over the WebSocket at /rpc/ws.\nNext: agent-gateway events tail, or agent-gateway deliveries tail\n",
  ],
])("a mistake lists the existing names: %j", async (args, err) => {
  expect(await runCli(args)).toEqual({ code: 2, out: "", err });
});

test("check finds a store in a folder that does not exist, and a configuration without a secret", async () => {
  const cwd = emptyFolder();
  const store = 'store: { type: "sqlite", path: "./nope/gateway.db" },';
  writeFileSync(join(cwd, "gateway.json5"), `{\n${store}\nagents: { main: { backend: "echo" } } }`);
  const { code, out, err } = await runCli(["check"], { cwd });
  expect({ code, out }).toEqual({ code: 1, out: "" });
  expect(err).toContain("Warning: Nothing can be called: no surface has a secret.");
  expect(err).toMatch(/gateway\.json5:2.*store\.path is in a folder that does not exist: mkdir -p \S+nope\n$/);
});

test("help in a terminal of unknown width is wrapped at 80 columns", async () => {
  const [unknown, wide] = await Promise.all(
    [0, 80].map((columns) => runCli(["hooks", "send", "--help"], { terminal: true, columns })),
  );
  expect(unknown).toMatchObject({ code: 0, out: expect.stringContaining("Usage: agent-gateway hooks send") });
  expect(unknown).toEqual(wide);
});
