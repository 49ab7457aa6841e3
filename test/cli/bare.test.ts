import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { emptyFolder, startCli } from "./cli.ts";

describe("the program's name without arguments", () => {
  test("prints the help and what it would serve on a terminal, and starts nothing", async () => {
    const here = emptyFolder();
    const tryOut = await startCli([], { cwd: here, terminal: true }).ended;
    expect([tryOut.code, tryOut.out]).toEqual([0, expect.stringContaining("Usage: agent-gateway")]);
    expect(tryOut.out).toContain("agent-gateway init writes one.");
    expect(tryOut.out).not.toContain("REST_API_KEY  ");
    writeFileSync(join(here, "gateway.json5"), "{}");
    expect((await startCli([], { cwd: here, terminal: true }).ended).out).toMatch(
      /agent-gateway serve runs the gateway of \/.*gateway\.json5\./,
    );
    const named = { cwd: here, terminal: true, env: { GATEWAY_CONFIG: "nope.json5" } };
    expect((await startCli([], named).ended).out).toContain("There is no nope.json5, which GATEWAY_CONFIG names.");
  });

  test.each([
    ["in a pipe", [], { GATEWAY_PORT: "0" }, false],
    ["with an option of serve", ["--port", "0"], {}, true],
    ["by npm start", [], { GATEWAY_PORT: "0", npm_lifecycle_event: "start" }, true],
  ])("serves %s", async (_, args, env, terminal) => {
    const serving = startCli(args, { env, terminal });
    await serving.until(({ out }) => out.includes("agent-gateway init") && out.includes("listening"));
    if (terminal) serving.type("\u0003");
    else serving.child.kill("SIGTERM");
    expect((await serving.ended).code).toBe(0);
  });
});
