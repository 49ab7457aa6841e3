import { spawnSync } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text as textOf } from "node:stream/consumers";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { root, startProcess } from "#test/harness/process.ts";
import { SUMMARISE, skillsFolder } from "#test/harness/skills.ts";
import { auditCommand } from "./command.ts";
import { createGateway, type Target } from "./gateway.ts";
import { audit, type Row, summaryOf } from "./report.ts";
import { clearUp, requirementsOf } from "./requirements.ts";

const key = "rest-key-of-the-audit";
const rpcToken = "rpc-token-of-the-audit";
const webhookToken = "webhook-token-of-the-audit";
function startAudited(
  rateLimit = { maxRequests: 0, windowMs: 3_600_000 },
  skills = skillsFolder(SUMMARISE),
  onFinished = onTestFinished,
) {
  return startProcess({
    onFinished,
    config: {
      skills: { dirs: [skills] },
      agents: { main: { backend: "echo" } },
      gateway: {
        rest: { auth: { keys: [{ name: "audit", key }] } },
        rpc: { auth: { tokens: [{ name: "audit", token: rpcToken, permissions: ["*"] }] } },
      },
      webhooks: { token: webhookToken, rateLimit },
    },
  });
}

/** One gateway for most audits: each removes what it created. */
const audited = await startAudited(undefined, undefined, afterAll);

function targetAt(url: string): Target {
  return { url, rpcUrl: url, hooksUrl: `${url}/hooks`, key, rpcToken, webhookToken };
}
async function auditOf(target: Target, flood = false): Promise<Row[]> {
  const gateway = createGateway(target, () => {});
  const found = await audit(requirementsOf(gateway, { flood }), () => {});
  await clearUp(gateway);
  return found;
}
function failing(found: readonly Row[]): string[] {
  return found.filter(({ outcome }) => outcome === "fails").map(({ text, words }) => `${text}: ${words}`);
}

const secrets = { REST_API_KEY: key, RPC_TOKEN: rpcToken, WEBHOOK_TOKEN: webhookToken };
function runProcess(args: readonly string[]) {
  const options = { cwd: root, env: { ...process.env, ...secrets }, encoding: "utf8" } as const;
  return spawnSync("node_modules/.bin/tsx", ["test/audit/main.ts", ...args], options);
}
async function run(args: readonly string[], env: Record<string, string>) {
  const said: string[] = [];
  const out = { print: () => {}, complain: (text: string) => said.push(`${text}\n`) };
  const status = await auditCommand(args, { ...secrets, ...env }, out);
  return { status, stderr: said.join("") };
}

type Reply = { status: number; type: string; text: string };
/** A faulty gateway: a proxy that changes the replies of another one. */
async function startTampered(url: string, tamper: (reply: Reply, place: string, sent: string) => Partial<Reply>) {
  const server = createServer(async (req, res) => {
    if (req.headers.upgrade !== undefined) return void res.writeHead(501).end();
    const body = await textOf(req);
    const headers = Object.entries(req.headers).filter(
      ([name]) => !["host", "connection", "content-length"].includes(name),
    );
    const init = { method: req.method as string, headers: headers as [string, string][], ...(body && { body }) };
    const response = await fetch(url + req.url, init);
    const type = response.headers.get("content-type") ?? "";
    const reply = { status: response.status, type, text: await response.text() };
    const changed = { ...reply, ...tamper(reply, `${req.method} ${req.url}`, body) };
    for (const [name, value] of response.headers)
      if (!["content-length", "content-encoding", "transfer-encoding", "connection"].includes(name))
        res.setHeader(name, value);
    res.writeHead(changed.status, { "content-type": changed.type, via: "1.1 a-proxy" }).end(changed.text);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    [Symbol.asyncDispose]: () => new Promise<void>((resolve) => server.close(() => resolve())),
  };
}

const KEPT_OUT = ["500", "internal", "the configuration has"];

describe("an audit", () => {
  test("reports that this gateway meets every requirement that can be checked from outside", async () => {
    const found = await auditOf(targetAt(audited.url));
    expect(failing(found)).toEqual([]);
    const unseen = found.filter(({ outcome }) => outcome === "unseen").map(({ text }) => text);
    expect(unseen.filter((text) => !KEPT_OUT.some((words) => text.includes(words)))).toEqual([
      "POST /hooks/wake answers 429, rate-limited",
      "POST /hooks/agent answers 429, rate-limited",
    ]);
    const { result } = await createGateway(targetAt(audited.url), () => {}).call("session.list");
    expect((result as { sessions: { sessionId: string }[] }).sessions.map(({ sessionId }) => sessionId)).toEqual([
      "agent:main:main",
    ]);
    const { status, stdout } = runProcess([audited.url, "--json"]);
    expect([status, JSON.parse(stdout).requirements]).toEqual([0, found]);
  });

  test("reports the same with the example skills, whose schemas refuse invented params", async () => {
    await using other = await startAudited(undefined, join(root, "docs/examples/skills"));
    expect(failing(await auditOf(targetAt(other.url)))).toEqual([]);
  });

  test("checks the rate limit if it may flood the gateway", async () => {
    await using limited = await startAudited({ maxRequests: 60, windowMs: 3_600_000 });
    const found = await auditOf(targetAt(limited.url), true);
    expect(failing(found)).toEqual([]);
    expect(found.filter(({ text, outcome }) => text.includes("429") && outcome === "holds")).toHaveLength(2);
  });

  test.each<[string, (reply: Reply, place: string, sent: string) => Partial<Reply>, RegExp[]]>([
    [
      "a reply without a field",
      ({ text }, place) => (place === "POST /hooks/wake" ? { text: text.replace(/"eventId":"[^"]+",?/, "") } : {}),
      [/^POST \/hooks\/wake is an operation: .*eventId/, /^POST \/hooks\/wake answers 200 with eventId/],
    ],
    [
      "a status that is not documented",
      (_, place) => (place === "GET /api/v1/skills/list" ? { status: 418 } : {}),
      [/^GET \/api\/v1\/skills\/list is an operation: .*418: skills.list has no such status/],
    ],
    [
      "a code of another error",
      ({ text }) => ({ text: text.replace("-32601", "-32602") }),
      [/^method-not-found has the code -32601: .*method-not-found has the code -32601, not -32602/],
    ],
    [
      "a page in place of an answer",
      (_, place) => (place === "POST /rpc" ? { type: "text/html", text: "<h1>Welcome</h1>" } : {}),
      [/^POST \/rpc answers over HTTP\/1.1: \/rpc answered 200 with text\/html/, /^agent.list is a method/],
    ],
  ])("reports %s", async (_, tamper, wanted) => {
    await using tampered = await startTampered(audited.url, tamper);
    const found = failing(await auditOf({ ...targetAt(tampered.url) }));
    for (const words of wanted) expect(found).toContainEqual(expect.stringMatching(words));
  });

  test("reports a gateway that accepts any token", async () => {
    await using tampered = await startTampered(audited.url, ({ status }) => (status === 401 ? { status: 200 } : {}));
    const found = failing(await auditOf(targetAt(tampered.url)));
    expect(found.filter((text) => text.includes("and no other token"))).toHaveLength(7);
    expect(found).toContainEqual(expect.stringMatching(/^unauthenticated has the code -32000, on each method/));
  });

  test("accepts that a proxy adds headers, and counts them", async () => {
    await using proxied = await startTampered(audited.url, () => ({}));
    const found = await auditOf({ ...targetAt(proxied.url), rpcUrl: audited.url });
    expect(failing(found)).toEqual([]);
    const holding = found.filter(({ outcome }) => outcome === "holds").length;
    expect(summaryOf(found)).toBe(
      `${holding} of ${found.length} requirements hold, 0 fail, ${found.length - holding} cannot be seen from outside.`,
    );
  });
});

describe("npm run audit", () => {
  test.each([
    [[], {}, "name one gateway: npm run audit -- http://127.0.0.1:18789\n"],
    [["localhost:18789"], {}, "URL: localhost:18789 is not an address; write http://HOST:PORT\n"],
    [
      ["http://127.0.0.1:18789"],
      { REST_API_KEY: "" },
      "REST_API_KEY is not set: it has to hold a secret that the gateway takes (see --help)\n",
    ],
    [["--surprise"], {}, /^Unknown option '--surprise'/],
    [["http://127.0.0.1:9"], {}, /^http:\/\/127.0.0.1:9\/rpc did not answer: /],
  ])("refuses invalid input: %j %j", async (args, env, words) => {
    const { status, stderr } = await run(args, env);
    expect(stderr).toMatch(words);
    expect(status).toBe(2);
  });
});
