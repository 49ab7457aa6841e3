import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type GatewayProcess, root, startProcess } from "#test/harness/process.ts";
import { pythons } from "./python.ts";
import { checkPython } from "./python-check.ts";
import { pythonProgram } from "./readme-program.ts";

const sources = join(root, "generated/clients/python");
const folder = mkdtempSync(join(tmpdir(), "client-python-"));
let gateway: GatewayProcess;

beforeAll(async () => {
  gateway = await startProcess({ onFinished: () => {} });
  // A hook cannot call `afterAll`. The function that it returns runs after the tests.
  return () => gateway[Symbol.asyncDispose]();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test("the client for Python has types for Python 3.9, in the strictest mode", () => {
  expect(checkPython(sources)).toContain("0 errors, 0 warnings");
});

test("what the contract does not have is an error for a type checker", () => {
  const program = mkdtempSync(join(folder, "types-"));
  const mistakes = [
    [`gateway.chat.sendd(message="x")`, `Cannot access attribute "sendd"`],
    [`gateway.chat.send(mesage="x")`, `No parameter named "mesage"`],
    ["gateway.chat.send()", `Argument missing for parameter "message"`],
    [`gateway.deliveries.list(outcome="fialed")`, `Literal['fialed']`],
    ["gateway.rpc.agent.status()", `Argument missing for parameter "agent_name"`],
    [`gateway.turns.get("turn_1").repply`, `Cannot access attribute "repply"`],
    [`AsyncGateway().turns.get("turn_1").status`, `Cannot access attribute "status"`],
    [`gateway.with_response(gateway.chat.send, mesage="x")`, `No parameter named "mesage"`],
  ] as const;
  writeFileSync(
    join(program, "wrong.py"),
    `from agent_gateway import AsyncGateway, Gateway
gateway = Gateway()
right: str = gateway.turns.get("turn_1").status
reply, response = gateway.with_response(gateway.chat.send, message="x")
status: int = response.status
text: str = reply.reply + reply["reply"]
${mistakes.map(([code]) => code).join("\n")}
`,
  );
  writeFileSync(
    join(program, "pyrightconfig.json"),
    JSON.stringify({ include: ["."], extraPaths: [join(sources, "src")], pythonVersion: "3.9" }),
  );
  const words = checkPython(program);
  for (const [, message] of mistakes) expect(words).toContain(message);
  const lines = [...words.matchAll(/wrong\.py:(\d+):\d+ - error/g)].map(([, line]) => Number(line));
  expect([...new Set(lines)]).toEqual(mistakes.map((_, n) => n + 7));
});

describe.each(pythons)("the package for Python %s", (version, python) => {
  const venv = join(folder, `venv-${version}`);
  const inVenv = join(venv, "bin/python");
  const run = (code: string) =>
    spawnSync(inVenv, ["-c", code], {
      cwd: folder,
      encoding: "utf8",
      env: {
        GATEWAY_URL: gateway.url,
        REST_API_KEY: gateway.secrets.CONSOLE_TOKEN ?? "",
        RPC_TOKEN: gateway.secrets.RPC_TOKEN ?? "",
        WEBHOOK_TOKEN: gateway.secrets.WEBHOOK_TOKEN ?? "",
      },
    });

  test("is built without a network, installed into an empty environment, and runs the code of its README", () => {
    const wheels = mkdtempSync(join(folder, "wheels-"));
    const offline = {
      env: { ...process.env, PIP_NO_INDEX: "1", PIP_DISABLE_PIP_VERSION_CHECK: "1", PIP_CACHE_DIR: wheels },
    };
    execFileSync(python, ["-m", "venv", venv]);
    execFileSync(inVenv, ["-m", "pip", "wheel", "--quiet", "--wheel-dir", wheels, sources], offline);
    const [wheel = ""] = readdirSync(wheels).filter((name) => name.endsWith(".whl"));
    expect(wheel).toMatch(/^agent_gateway_client-\d+\.\d+\.\d+-py3-none-any\.whl$/);
    execFileSync(inVenv, ["-m", "pip", "install", "--quiet", join(wheels, wheel)], offline);
    expect(execFileSync(inVenv, ["-m", "pip", "show", "-f", "agent-gateway-client"], { encoding: "utf8" })).toContain(
      "agent_gateway/py.typed",
    );

    const program = pythonProgram(readFileSync(join(sources, "README.md"), "utf8")).replace(
      `url="http://127.0.0.1:18789", `,
      "",
    );
    const given = `
import base64, json, time
from agent_gateway import webhooks
body = json.dumps({"type": "turn.completed", "timestamp": "now", "data": {"reply": "announced"}})
secret = "whsec_" + base64.b64encode(b"a secret that is long enough").decode()
headers = webhooks.sign(body, secret)
`;
    const { stdout, stderr, status } = run(given + program);
    expect({ stderr, status }).toEqual({ stderr: "", status: 0 });
    expect(stdout.split("\n")).toEqual(
      expect.arrayContaining([
        "What changed since yesterday?",
        "turn.completed",
        "announced",
        expect.stringContaining("It is gone. req_"),
        "200 application/json True",
      ]),
    );
  });
});

test("the source distribution builds the same wheel", () => {
  const [[, python]] = pythons as [readonly [string, string]];
  const build = (at: string, to: string, what: "wheel" | "sdist") =>
    execFileSync(python, ["-c", `import build_backend; print(build_backend.build_${what}("${to}"))`], {
      cwd: at,
      encoding: "utf8",
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
    }).trim();
  const [one, two] = [mkdtempSync(join(folder, "one-")), mkdtempSync(join(folder, "two-"))];
  const archive = build(sources, one, "sdist");
  execFileSync("tar", ["xzf", archive], { cwd: one });
  const wheel = build(sources, one, "wheel");
  expect(build(join(one, archive.replace(".tar.gz", "")), two, "wheel")).toBe(wheel);
  expect(readFileSync(join(two, wheel)).equals(readFileSync(join(one, wheel)))).toBe(true);
});
