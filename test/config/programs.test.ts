import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { loadConfig } from "#config/load.ts";
import { BUILT } from "#gateway/gateway.ts";

/** The use of a program: an agent, or its tools. */
type Where = "command" | "acp" | "tools";

/** The problems of a configuration with a program as its only agent, in a folder with a program and a text file. */
async function problemsOf(backend: Where, program: { run: string[]; cwd?: string; env?: object }) {
  const folder = mkdtempSync(join(tmpdir(), "programs-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "bin"));
  writeFileSync(join(folder, "bin/agent"), "#!/bin/sh\n");
  chmodSync(join(folder, "bin/agent"), 0o755);
  writeFileSync(join(folder, "text"), "", { mode: 0o644 });
  const file = join(folder, "gateway.json5");
  const config =
    backend === "tools"
      ? { agents: { main: { backend: "echo" } }, tools: { main: { type: "stdio", ...program } } }
      : { agents: { main: { backend, [backend]: program } } };
  writeFileSync(file, JSON.stringify(config));
  const loading = loadConfig({ file, env: {}, built: BUILT });
  return await loading.then(
    () => [],
    (error: { problems: { key: string; message: string }[] }) =>
      error.problems.map(({ key, message }) => `${key} ${message.replaceAll(folder, "~")}`),
  );
}

test.each(["command", "acp", "tools"] as const)(
  "a program that does not exist or may not be executed is refused (%s)",
  async (backend) => {
    const at = backend === "tools" ? "tools.main" : `agents.main.${backend}`;
    const problems = (program: Parameters<typeof problemsOf>[1]) => problemsOf(backend, program);
    expect(await problems({ run: ["no-such-program"] })).toEqual([
      `${at}.run names a program that does not exist: no-such-program (in no folder of PATH).`,
    ]);
    expect(await problems({ run: ["./missing"] })).toEqual([
      `${at}.run names a program that does not exist: ./missing (~/missing).`,
    ]);
    expect(await problems({ run: ["./text"] })).toEqual([`${at}.run names a file that is not executable: ~/text.`]);
    expect(await problems({ run: ["./bin"] })).toEqual([
      `${at}.run names a program that does not exist: ./bin (~/bin).`,
    ]);
    expect(await problems({ run: ["sh"], cwd: "missing" })).toEqual([`${at}.cwd is not a folder: ~/missing.`]);
    expect(await problems({ run: ["agent"], env: { PATH: "/nowhere" } })).toHaveLength(1);
  },
);

test("an agent's program is found next to the configuration, in its folder, and in its PATH", async () => {
  for (const program of [
    { run: ["sh"] },
    { run: ["./bin/agent"] },
    { run: ["./agent"], cwd: "bin" },
    { run: ["agent"], env: { PATH: "/nowhere:bin" } },
  ]) {
    expect(await problemsOf("command", program)).toEqual([]);
  }
});
