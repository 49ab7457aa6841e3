import { expect, test } from "vitest";
import manifest from "../../package.json" with { type: "json" };
import { runCli } from "./cli.ts";

test("prints its version", async () => {
  expect(await runCli(["--version"])).toEqual({ code: 0, out: `${manifest.version}\n`, err: "" });
});

test("names the command that was meant", async () => {
  const { code, out, err } = await runCli(["sesions"]);
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toBe("There is no command sesions. Did you mean sessions?\nNext: agent-gateway --help\n");
});

test("names the option that was meant, and the help that lists all", async () => {
  const { code, err } = await runCli(["sessions", "list", "--agnt", "main"]);
  expect(code).toBe(2);
  expect(err).toBe("Unknown option '--agnt'. Did you mean --agent?\nNext: agent-gateway sessions list --help\n");
});

test("says which token a call needs, and where it is given", async () => {
  const { code, err } = await runCli(["sessions", "list"]);
  expect(code).toBe(4);
  expect(err).toContain("This call needs an RPC token. Pass --rpc-token, or set RPC_TOKEN.");
});
