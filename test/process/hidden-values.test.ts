// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import fc from "fast-check";
import { expect, onTestFinished, test } from "vitest";
import { WebSocket } from "ws";
import { runCli } from "#test/cli/cli.ts";
import { fillPlaces, SHOWN, secretPlaces } from "#test/config/schema-places.ts";
import { type GatewayProcess, startProcess } from "#test/harness/process.ts";

const TOKENS = {
  REST_API_KEY: "rest-key-0123456789-of-this-run",
  RPC_TOKEN: "rpc-token-0123456789-of-this-run",
  WEBHOOK_TOKEN: "webhook-token-0123456789-of-this-run",
  CONSOLE_TOKEN: "console-token-0123456789-of-this-run",
};

/** Repeats its arguments and its environment as an error, as failing programs may do. */
const PROGRAM = `process.stderr.write(process.argv.join(" ") + JSON.stringify(process.env) + "\\n"); process.exitCode = 3;`;

/** A server that repeats everything it receives, with the status that its path names. */
async function startEcho() {
  const requests: { url: string; body: string }[] = [];
  const textOf = async (req: IncomingMessage) => Buffer.concat(await req.toArray()).toString();
  const server = createServer(async (req, res) => {
    const body = await textOf(req);
    requests.push({ url: req.url ?? "", body });
    const status = Number(/^\/(\d{3})\//.exec(req.url ?? "")?.[1] ?? 200);
    const sent = JSON.stringify({ url: req.url, ...req.headers, body });
    const error = { error: { message: `Not for you: ${sent}`, code: sent }, model: sent, detail: sent };
    res.writeHead(status, {
      location: `http://127.0.0.1:1/${encodeURIComponent(req.url ?? "")}`,
      "x-sent": encodeURIComponent(sent),
    });
    res.end(JSON.stringify(error));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return { requests, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

/** A configuration in which every outbound party has its own secrets and fails. Every other place of the schema with hidden values is filled, too. */
function configOf(echo: string, secret: () => string) {
  const config = partiesOf(echo, secret);
  const places = secretPlaces("Q3cr3t-value.of_this-run").filter(
    ({ place }) => ![...SHOWN, ...NOT_HERE].includes(place.join(".")),
  );
  expect(fillPlaces(config, places, secret), "places that partiesOf lacks: add the objects around them").toEqual([]);
  return config;
}

/** There are one store, one form of the webhook token, the named providers, and no skill for a schedule. */
const NOT_HERE = ["schedules.*.params.*", "webhooks.token", "store.url", "store.url.[]", "agents.*.models.*.provider"];

function partiesOf(echo: string, secret: () => string) {
  const headers = () => ({ authorization: `Bearer ${secret()}`, "x-team": secret() });
  const env = () => ({ TEAM: secret() });
  const run = () => [process.execPath, "-e", PROGRAM, "--", secret(), `--as=${secret()}`];
  const http = (path: string) => ({
    backend: "http",
    http: { url: `${echo}/${path}/${secret()}?as=${secret()}`, headers: headers() },
  });
  return {
    gateway: {
      rest: { auth: { keys: [{ name: "ci", key: "${REST_API_KEY}", scopes: ["chat", "admin"] }] } },
      rpc: { auth: { tokens: [{ name: "ops", token: "${RPC_TOKEN}", permissions: "*" }] } },
      console: { token: "${CONSOLE_TOKEN}" },
      openai: { enabled: true },
      tracing: { endpoint: `${echo}/v1/traces?as=${secret()}`, headers: headers(), content: true },
      announceTo: "ops",
      defaultAgent: "echo",
    },
    webhooks: {
      token: ["${WEBHOOK_TOKEN}", { value: secret() }],
      mappings: {
        signed: { match: {}, message: "x", agent: "echo", verify: { type: "github", secret: secret() } },
        rotated: { match: {}, message: "x", agent: "echo", verify: { type: "slack", secret: [secret()] } },
        sms: {
          match: {},
          message: "x",
          agent: "echo",
          verify: { type: "twilio", secret: secret(), url: `https://gateway.example.com/${secret()}` },
        },
        given: {
          match: { "body.kind": secret(), "body.kinds": [secret()] },
          message: "x",
          agent: "echo",
          coalesce: { key: secret() },
        },
        push: { match: {}, message: "{body.title}", agent: "echo" },
      },
    },
    providers: {
      ours: {
        type: "openai-compatible",
        baseUrl: `${echo}/401/${secret()}?as=${secret()}`,
        apiKey: secret(),
        headers: headers(),
      },
    },
    tools: {
      far: { type: "http", url: `http://127.0.0.1:1/sse?key=${secret()}`, headers: headers() },
      near: { type: "stdio", run: run(), env: env() },
    },
    channels: {
      ops: { type: "webhook", url: `${echo}/500/${secret()}?as=${secret()}`, secret: secret() },
      team: { type: "slack", botToken: secret(), to: "C0123456789" },
    },
    notify: {
      ops: { url: `${echo}/500/${secret()}?as=${secret()}`, secret: secret(), events: ["*"], content: "reply" },
    },
    agents: {
      echo: { backend: "echo" },
      failing: { backend: "echo", echo: {} },
      refused: { backend: "http", http: { url: `http://ada:${secret()}@127.0.0.1:1/${secret()}` } },
      unauthorized: http("401"),
      redirected: http("307"),
      broken: http("200"),
      card: { backend: "a2a", a2a: { url: `${echo}/401/${secret()}?as=${secret()}`, headers: headers() } },
      model: {
        backend: "model",
        models: { small: { provider: "ours", model: "small-1", options: {} } },
        tools: ["far/*", "near/*"],
      },
      command: { backend: "command", command: { run: run(), env: env() } },
      acp: { backend: "acp", acp: { run: run(), env: env() } },
    },
    store: { type: "sqlite", path: "./gateway.db" },
  };
}

/** The encodings in which nothing may show a secret. */
function formsOf(secret: string): string[] {
  const inside = [0, 1, 2].map((before) => {
    const text = Buffer.concat([Buffer.alloc(before), Buffer.from(secret), Buffer.alloc(2)]).toString("base64");
    return text.slice(Math.ceil((before * 8) / 6), Math.floor(((before + Buffer.byteLength(secret)) * 8) / 6));
  });
  const hex = Buffer.from(secret).toString("hex");
  const forms = [
    secret,
    encodeURIComponent(secret),
    encodeURIComponent(encodeURIComponent(secret)),
    JSON.stringify(secret).slice(1, -1),
    ...inside,
  ];
  return [
    ...new Set([
      ...forms,
      ...inside.map((one) => one.replaceAll("+", "-").replaceAll("/", "_")),
      hex,
      hex.toUpperCase(),
    ]),
  ];
}

/** The ways in which unauthenticated callers and senders repeat one of our secrets. */
function writtenBySenders(secret: string): string[] {
  return [
    secret,
    encodeURIComponent(secret),
    Buffer.from(`user:${secret}`).toString("base64"),
    [...secret].map((sign) => `%${sign.charCodeAt(0).toString(16)}`).join(""),
  ];
}

async function call(url: string, token: string, body?: unknown, headers: Record<string, string> = {}): Promise<string> {
  const sent = {
    authorization: `Bearer ${token}`,
    ...(body === undefined ? {} : { "content-type": "application/json" }),
    ...headers,
  };
  const init =
    body === undefined ? {} : { method: "POST", body: typeof body === "string" ? body : JSON.stringify(body) };
  const answer = await fetch(url, { ...init, headers: sent });
  return `${[...answer.headers].join("\n")}\n${await answer.text()}`;
}
function rpcOf(url: string) {
  return (method: string, params: object = {}) =>
    call(`${url}/rpc`, TOKENS.RPC_TOKEN, { jsonrpc: "2.0", id: 1, method, params });
}

/** Follows the gateway and its deliveries over a WebSocket. */
async function follow(url: string, frames: string[]) {
  const socket = new WebSocket(`${url.replace("http", "ws")}/rpc/ws`, {
    headers: { authorization: `Bearer ${TOKENS.RPC_TOKEN}` },
  });
  socket.on("message", (data) => frames.push(String(data)));
  await once(socket, "open");
  const agents = [
    "echo",
    "failing",
    "refused",
    "unauthorized",
    "redirected",
    "broken",
    "card",
    "model",
    "command",
    "acp",
  ];
  socket.send(
    JSON.stringify({
      jsonrpc: "2.0",
      id: 1,
      method: "rpc.subscribe",
      params: { agents, gateway: null, deliveries: true },
    }),
  );
  await once(socket, "message");
  return socket;
}

/** Refused requests of unauthenticated callers, and requests of senders, with a secret in each recorded place. */
async function repeat({ url }: GatewayProcess, secret: string): Promise<string[]> {
  const answers: Promise<string>[] = [];
  for (const written of writtenBySenders(secret)) {
    const ids = { "idempotency-key": written, "x-github-delivery": written, "webhook-id": written };
    const headers = { "user-agent": written, "x-note": `see ${written}`, ...ids };
    answers.push(call(`${url}/api/v1/${written}?key=${written}`, "wrong"));
    answers.push(call(`${url}/hooks/${encodeURIComponent(written)}?key=${written}`, "wrong", {}, headers));
    answers.push(
      call(`${url}/hooks/push`, TOKENS.WEBHOOK_TOKEN, { title: "Built", note: written, [written]: 1 }, headers),
    );
    answers.push(call(`${url}/hooks/nothing-${encodeURIComponent(written)}`, TOKENS.WEBHOOK_TOKEN, {}, headers));
    answers.push(call(`${url}/api/v1/chat/send`, TOKENS.REST_API_KEY, { message: "Hi", agent: written }, headers));
    answers.push(call(`${url}/api/v1/chat/send`, TOKENS.REST_API_KEY, { message: "Hi", [written]: 1 }));
    answers.push(rpcOf(url)(written, { [written]: written }));
    answers.push(rpcOf(url)("agent.sendMessage", { agentName: written, message: "Hi" }));
    answers.push(...namedBy(url, written).map(({ answer }) => answer));
  }
  return await Promise.all(answers);
}

/** Every name that a call can give to a session, its user, its channel or its model. */
function namedBy(url: string, name: string): { field: string; answer: Promise<string> }[] {
  const rest = (path: string, body: object) => call(`${url}${path}`, TOKENS.REST_API_KEY, body);
  const send = (params: object) => rpcOf(url)("agent.sendMessage", { agentName: "echo", message: "Hi", ...params });
  const hook = (body: object) =>
    call(`${url}/hooks/agent`, TOKENS.WEBHOOK_TOKEN, { message: "Hi", agent: "echo", ...body });
  const completion = { model: "echo", messages: [{ role: "user", content: "Hi" }] };
  return [
    ...["session_id", "user_id", "model"].flatMap((field) => [
      { field, answer: rest("/api/v1/chat/send", { message: "Hi", agent: "echo", [field]: name }) },
      { field, answer: rest("/api/v1/skills/trigger", { skill_id: "greet", agent: "echo", [field]: name }) },
    ]),
    ...["sessionId", "userId", "model", "channel"].map((field) => ({ field, answer: send({ [field]: name }) })),
    { field: "session", answer: hook({ session: `webhook:${name}` }) },
    ...["model", "channel"].map((field) => ({ field, answer: hook({ [field]: name }) })),
    { field: "user", answer: rest("/v1/chat/completions", { ...completion, user: name }) },
    { field: "model", answer: rest("/v1/chat/completions", { ...completion, model: `echo/${name}` }) },
  ];
}

test("a name that contains the value of a variable is refused with a reason; an event's text is stored", async () => {
  const values = { TEAM: "Team-secret/of+this=run", REGION_CODE: "Event-secret-of-this-run" };
  const env = { TEAM: "${TEAM}", CODE: "${REGION_CODE}" };
  const program = { backend: "command", command: { run: ["cat"], env } };
  await using gateway = await startProcess({
    config: {
      gateway: { ...partiesOf("http://127.0.0.1:1", () => "x").gateway, tracing: {}, announceTo: undefined },
      webhooks: { token: "${WEBHOOK_TOKEN}" },
      agents: { echo: { backend: "echo" }, program },
      store: { type: "sqlite", path: "./gateway.db" },
    },
    env: { ...TOKENS, ...values, LOG_FORMAT: "json" },
  });
  const { url } = gateway;
  for (const written of [values.TEAM, encodeURIComponent(values.TEAM), `of-${btoa(`a:${values.TEAM}`)}`]) {
    for (const { field, answer } of namedBy(url, written)) {
      expect(await answer).toContain(`\`${field}\` contains the value of a variable of the gateway's configuration`);
    }
  }
  expect(await call(`${url}/api/v1/turns`, TOKENS.CONSOLE_TOKEN)).toContain('"turns":[]');
  for (const { answer } of namedBy(url, "harmless")) expect(await answer).not.toContain("variable");

  const text = `It says ${values.REGION_CODE}`;
  expect(await call(`${url}/hooks/wake`, TOKENS.WEBHOOK_TOKEN, { text })).toContain("event queued");
  expect(await call(`${url}/api/v1/events`, TOKENS.CONSOLE_TOKEN)).toContain("It says [hidden]");
  gateway.kill("SIGTERM");
  await gateway.exited;
  const files = readdirSync(gateway.folder).filter((file) => file.startsWith("gateway.db"));
  const stored = files.map((file) => readFileSync(join(gateway.folder, file), "latin1")).join();
  for (const form of formsOf(values.TEAM)) expect(stored + gateway.output).not.toContain(form);
  for (const form of formsOf(values.REGION_CODE)) expect(gateway.output).not.toContain(form);
  // Agents get an event unchanged.
  expect(stored).toContain(text);
});

test("no value of a variable appears in anything that the gateway shows or records, in any encoding", async () => {
  // Letters, digits and characters of an address remain unchanged; a run can be repeated with its seed.
  const seed = Date.now() % 2 ** 31;
  const made = fc.sample(
    fc.string({ unit: fc.constantFrom(..."abcdefghXYZ0123456789-_.~!*'()"), minLength: 12, maxLength: 48 }),
    { seed, numRuns: 120 },
  );
  const env: Record<string, string> = {};
  const echo = await startEcho();
  const config = configOf(echo.url, () => {
    const name = `VALUE_${Object.keys(env).length}`;
    env[name] = `Q${made[Object.keys(env).length]}`;
    return `\${${name}}`;
  });
  await using gateway = await startProcess({
    config,
    env: { ...TOKENS, ...env, LOG_LEVEL: "debug", LOG_FORMAT: "json" },
  });
  const { url } = gateway;
  const frames: string[] = [];
  const socket = await follow(url, frames);
  const answers: string[] = [];
  const get = async (path: string) => {
    const answer = await call(url + path, TOKENS.CONSOLE_TOKEN);
    answers.push(answer);
    return JSON.parse(answer.slice(answer.lastIndexOf("\n") + 1));
  };

  for (const agent of Object.keys(config.agents))
    answers.push(await call(`${url}/api/v1/chat/send`, TOKENS.REST_API_KEY, { message: "Hi", agent }));
  answers.push(
    await call(`${url}/hooks/agent`, TOKENS.WEBHOOK_TOKEN, { message: "Hi", agent: "echo", delivery: "announce" }),
  );
  answers.push(await call(`${url}/hooks/wake`, TOKENS.WEBHOOK_TOKEN, { text: "Hi" }));
  await gateway.logged("announcement.retried");
  for (const secret of [...Object.values(env).slice(0, 4), ...Object.values(TOKENS)])
    answers.push(...(await repeat(gateway, secret)));
  const reloaded = { ...config, channels: { ops: { ...config.channels.ops, url: `${echo.url}/501/\${VALUE_0}` } } };
  gateway.configure(reloaded);
  await gateway.logged("config.reloaded");
  await expect.poll(() => echo.requests.filter(({ url }) => url.startsWith("/v1/traces")).length).toBeGreaterThan(0);

  for (const path of ["/config", "/mappings", "/keys", "/skills/list", "/events", "/turns", "/turns?status=failed"])
    await get(`/api/v1${path}`);
  answers.push(await call(`${url}/metrics`, TOKENS.RPC_TOKEN), await call(`${url}/readyz`, TOKENS.RPC_TOKEN));
  for (const method of ["agent.list", "session.list", "system.health", "system.info", "usage.stats", "rpc.discover"])
    answers.push(await rpcOf(url)(method));
  for (const agentName of Object.keys(config.agents)) answers.push(await rpcOf(url)("agent.status", { agentName }));
  const { turns } = await get("/api/v1/turns?limit=100");
  for (const { turn_id } of turns) await get(`/api/v1/turns/${turn_id}`);
  const { deliveries } = await get("/api/v1/deliveries?limit=100");
  const replayable = new Map<string, boolean>();
  for (const { delivery_id, mapping } of deliveries) {
    const delivery = await get(`/api/v1/deliveries/${delivery_id}`);
    if (mapping === "push") replayable.set(delivery_id, delivery.replayable);
  }
  expect([...replayable.values()]).toContain(false);
  const [held] = [...replayable].find(([, one]) => !one) as [string, boolean];
  expect(await call(`${url}/api/v1/deliveries/${held}/replay`, TOKENS.CONSOLE_TOKEN, {})).toContain(
    "delivery-not-replayable",
  );
  const ways = ["--url", url, "--key", TOKENS.CONSOLE_TOKEN, "--rpc-token", TOKENS.RPC_TOKEN];
  const diagnostics = await runCli(["diagnostics", "export", "-", ...ways]);
  expect(diagnostics).toMatchObject({ code: 0 });
  const backup = await runCli(["backup", "copy.db", "--store", "gateway.db"], { cwd: gateway.folder });
  expect(backup).toMatchObject({ code: 0 });
  socket.close();

  const files = () => readdirSync(gateway.folder).filter((file) => /\.db/.test(file));
  const stored = files().map((file): [string, string] => [file, readFileSync(join(gateway.folder, file), "latin1")]);
  gateway.kill("SIGTERM");
  await gateway.exited;
  stored.push(
    ...files().map((file): [string, string] => [
      `${file} after the end`,
      readFileSync(join(gateway.folder, file), "latin1"),
    ]),
  );
  expect(stored.map(([file]) => file)).toEqual(expect.arrayContaining(["gateway.db", "gateway.db-wal", "copy.db"]));

  const shown: [string, string][] = [
    ["the log", gateway.output],
    ["an answer", answers.join("\n")],
    ["a push", frames.join("\n")],
    ["the diagnostics", diagnostics.out],
    [
      "a trace",
      echo.requests
        .filter(({ url }) => url.startsWith("/v1/traces"))
        .map(({ body }) => body)
        .join("\n"),
    ],
    ...stored,
  ];
  const found = Object.entries({ ...env, ...TOKENS }).flatMap(([name, secret]) =>
    formsOf(secret).flatMap((form) =>
      shown.flatMap(([where, text]) => {
        const at = text.indexOf(form);
        return at < 0 ? [] : [`${name} in ${where} (seed ${seed}): …${text.slice(Math.max(0, at - 150), at)}«${form}»`];
      }),
    ),
  );
  // The pages of the store are not text for a terminal.
  expect(found.map((one) => one.replace(/[^ -~]/g, "."))).toEqual([]);
  // Each of them was recorded, and had a secret.
  const hiding = shown.flatMap(([where, text]) => (text.includes("[hidden]") ? [where] : []));
  const recording = ["the log", "an answer", "a push", "the diagnostics", "gateway.db after the end", "copy.db"];
  expect(hiding).toEqual(expect.arrayContaining(recording));
}, 120_000);
