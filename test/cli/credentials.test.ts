// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { startProcess } from "#test/harness/process.ts";
import { emptyFolder, runCli, startCli } from "./cli.ts";

const secrets = {
  CONSOLE_TOKEN: "console-token-of-the-folder",
  REST_API_KEY: "rest-api-key-of-the-folder",
  ADMIN_KEY: "admin-key-of-the-folder",
  RPC_TOKEN: "rpc-token-of-the-folder",
  LISTER: "lister-token-of-the-folder",
};
const config = {
  gateway: {
    console: { token: "${CONSOLE_TOKEN}" },
    rest: {
      auth: {
        keys: [
          { name: "old", key: "expired-key-of-the-folder", expiresAt: "2020-01-01" },
          { name: "boss", key: "${ADMIN_KEY}", scopes: ["admin"] },
          { name: "chatter", key: "${REST_API_KEY}", scopes: ["chat"] },
        ],
      },
    },
    rpc: {
      auth: {
        tokens: [
          { name: "ops", token: "${RPC_TOKEN}", permissions: "*" },
          { name: "lister", token: "${LISTER}", permissions: ["agent.list"] },
        ],
      },
    },
  },
  agents: { main: { backend: "echo" } },
};

const gateway = await startProcess({ config, env: secrets, onFinished: afterAll });
while (!(await fetch(`${gateway.url}/readyz`)).ok) await new Promise((resolve) => setTimeout(resolve, 50));

/** The folder of the gateway, as `init` creates one. */
const cwd = emptyFolder(afterAll);
const port = Number(new URL(gateway.url).port);
writeFileSync(join(cwd, "gateway.json5"), JSON.stringify({ ...config, gateway: { ...config.gateway, port } }));
writeFileSync(
  join(cwd, "gateway.env"),
  Object.entries(secrets)
    .map(([name, value]) => `${name}=${value}`)
    .join("\n"),
);

function requests() {
  return gateway.records.filter(({ event, caller }) => event === "request" && caller !== undefined);
}

describe("a command uses the weakest credential of its folder that is sufficient", () => {
  test.each([
    [["send", "main", "Hello"], "chatter"],
    [["skills", "list"], "chatter"],
    [["turns", "list"], "boss"],
    [["keys", "list"], "console"],
    [["agents", "list"], "lister"],
    [["sessions", "list"], "ops"],
    [["call", "agent.list"], "lister"],
    [["api", "GET", "/api/v1/skills/list"], "chatter"],
    [["api", "GET", "/api/v1/deliveries?limit=1"], "boss"],
  ])("%j is of %s", async (args, caller) => {
    const before = requests().length;
    expect(await runCli(args, { cwd })).toMatchObject({ code: 0 });
    await gateway.until(() => requests().length > before);
    expect(requests().at(-1)).toMatchObject({ caller });
  });

  test("and only the credential of an option, if there is one", async () => {
    expect(await runCli(["turns", "list", "--key", secrets.REST_API_KEY], { cwd })).toMatchObject({
      code: 4,
      err: expect.stringContaining("lacks the scope admin"),
    });
    expect((await runCli(["turns", "list"], { cwd, env: { REST_API_KEY: secrets.REST_API_KEY } })).code).toBe(0);
  });

  test("and /metrics accepts a token for it", async () => {
    expect((await runCli(["api", "GET", "/metrics"], { cwd })).out).toContain("# HELP");
  });

  test("and usage is counted for it", async () => {
    await runCli(["send", "main", "Hello"], { cwd });
    const { out } = await runCli(["usage", "--group-by", "token", "-q"], { cwd });
    expect(out.split("\n")).not.toContain("console");
    expect(out).toContain("chatter");
  });
});

describe("without a key", () => {
  const away = "The key in gateway.json5 is not used: it is for http://127.0.0.1:";

  test("every command says why the folder's credential is not used for another address", async () => {
    const { code, out, err } = await runCli(["send", "main", "Hello", "--url", "http://127.0.0.2:4000"], { cwd });
    expect({ code, out, err }).toEqual({
      code: 4,
      out: "",
      err: `${away}${port}, and the address is http://127.0.0.2:4000.\nNext: pass the key of that gateway: --key\n`,
    });
    expect(await runCli(["send", "main", "Hello", "--url", `http://localhost:${port}/`], { cwd })).toMatchObject({
      code: 0,
    });
  });

  test("chat says this before the first message", async () => {
    const talk = startCli(["chat", "main", "--url", "http://127.0.0.2:4000"], { cwd, terminal: true });
    expect(await talk.ended).toMatchObject({ code: 4, out: expect.stringContaining(away) });
    const none = await runCli(["chat", "main", "--url", gateway.url], { input: "" });
    expect([none.code, none.err]).toEqual([4, expect.stringContaining("set REST_API_KEY")]);
  });

  test("doctor reports that it could not check anything, and fails", async () => {
    const { code, out } = await runCli(["doctor", "--url", gateway.url]);
    expect([code, out]).toEqual([
      1,
      expect.stringMatching(/✕ tokens +Without a key or a token.*\n +→ set REST_API_KEY/),
    ]);
    expect((await runCli(["doctor"], { cwd })).code).toBe(0);
  });
});

test.each([
  [["open"], { CONSOLE_TOKEN: "wrong" }, "the console token in CONSOLE_TOKEN"],
  [["open", "--key", "wrong"], {}, "the key of --key"],
  [["keys", "list"], { CONSOLE_TOKEN: "wrong" }, "the console token in CONSOLE_TOKEN"],
  [["agents", "list"], { CONSOLE_TOKEN: "wrong" }, "the console token in CONSOLE_TOKEN"],
  [["send", "main", "Hello"], { REST_API_KEY: "wrong" }, "the REST key in REST_API_KEY"],
  [["agents", "list", "--rpc-token", "wrong"], {}, "the token of --rpc-token"],
])("%j names the refused token: %j", async (args, env, name) => {
  const { code, err } = await runCli([...args, "--url", gateway.url], { env });
  expect([code, err]).toEqual([
    4,
    expect.stringMatching(
      new RegExp(
        `^The gateway at ${gateway.url} does not accept ${name}\\. \\(unauthenticated, req_\\w+\\)\nNext: agent-gateway doctor\n$`,
      ),
    ),
  ]);
});

describe("chat sends no command to the agent", () => {
  test("an unknown one in a pipe ends it with 2", async () => {
    const { code, out, err } = await runCli(["chat", "main"], { cwd, input: "/help\n//etc\nHello\n/quit\nnever\n" });
    expect([code, out]).toEqual([2, "/etc\nHello\n"]);
    expect(err).toMatch(
      /^\/new begins another session.*\n\/quit is not a command\. The chat ends here: this line and those after it were not sent\. .*\n$/,
    );
  });

  test("on a terminal it continues", async () => {
    const talk = startCli(["chat", "main"], { cwd, terminal: true });
    await talk.until(({ out }) => out.includes("You talk with main"));
    talk.type("/quit\r");
    await talk.until(({ out }) => out.includes("/quit is not a command, and was not sent."));
    talk.type("/exit\r");
    expect((await talk.ended).code).toBe(0);
  });
});
