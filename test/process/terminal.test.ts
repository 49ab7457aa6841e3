import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { type GatewayProcess, type ProcessOptions, startProcess } from "#test/harness/process.ts";
import { createRest } from "#test/harness/rest.ts";

const hasScript = /util-linux/.test(spawnSync("script", ["--version"], { encoding: "utf8" }).stdout ?? "");

/** The gateway in a separate terminal. It treats the end of the terminal as a signal to reload, so it is stopped with `script`. */
function inTerminal(env: ProcessOptions["env"] = {}): Promise<GatewayProcess> {
  return startProcess({
    env: { TZ: "Asia/Kolkata", TERM: "xterm", ...env },
    command: (usual) => ["script", "-qefc", `exec setpriv --pdeathsig KILL ${usual.join(" ")}`, "/dev/null"],
  });
}

const ESCAPE = "\u001b";
function lineWith(gateway: GatewayProcess, text: string) {
  return gateway.until(() => gateway.out.find((line) => line.includes(text)));
}

test.skipIf(!hasScript)(
  "in a terminal the log is for people: local time with its zone, colour, turn ids, wrong paths",
  async () => {
    await using gateway = await inTerminal();
    const listening = await lineWith(gateway, " listening ");
    expect(listening).toMatch(
      /^.\[90m\d\d:\d\d:\d\d\.\d{3}\+05:30.\[0m .\[32minfo .\[0m listening .\[90maddress=.\[0mhttp/,
    );
    expect(await lineWith(gateway, " config.warned ")).toContain(`${ESCAPE}[33mwarn `);

    const rest = createRest(gateway.url, gateway.secrets.REST_API_KEY);
    const { json } = await rest.call("chat.send", { body: { message: "Hi" } });
    const { turn_id } = json as { turn_id: string };
    expect(await lineWith(gateway, "chat.send")).toContain(`turnId=${ESCAPE}[0m${turn_id}`);
    await fetch(`${gateway.url}/api/v2/chat/a-token-of-somebody?key=secret`);
    const wrong = await lineWith(gateway, "unknown");
    expect(wrong).toContain(`path=${ESCAPE}[0m/api/v2/chat/*** `);
    expect(wrong).not.toMatch(/secret|somebody/);
  },
);

test.skipIf(!hasScript)("NO_COLOR switches colours off, and LOG_FORMAT=json selects JSON lines", async () => {
  await using plain = await inTerminal({ NO_COLOR: "1" });
  expect(await lineWith(plain, " listening ")).toMatch(/^\d\d:\d\d:\d\d\.\d{3}\+05:30 info {2}listening address=http/);
  expect(plain.output).not.toContain(ESCAPE);
  await using json = await inTerminal({ LOG_FORMAT: "json" });
  expect(await json.logged("listening")).toMatchObject({ level: "info" });
});
