import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { GatewayError } from "#generated/clients/typescript/src/index.ts";
import type { Budget, Schedule } from "#generated/clients/typescript/src/rest-types.ts";
import { version } from "../version.ts";
import { type Calling, failureOf } from "./calling.ts";
import { configFile } from "./configured.ts";
import { wordsFor } from "./failures.ts";
import { oneLine } from "./output.ts";
import { asTyped } from "./typed.ts";
import { count } from "./values.ts";

type Check = { id: string; state: "ok" | "warning" | "failed"; words: string; next?: string };
type DoctorCall = Calling<{ turn?: boolean }>;

function ok(id: string, words: string): Check {
  return { id, state: "ok", words };
}
function warning(id: string, words: string, next: string): Check {
  return {
    id,
    state: "warning",
    words,
    next: asTyped(next),
  };
}
function failed(id: string, words: string, next: string): Check {
  return {
    id,
    state: "failed",
    words,
    next: asTyped(next),
  };
}

/** Everything that can be checked from here, in the order in which one thing needs another. */
export async function diagnose(given: DoctorCall): Promise<Check[]> {
  const [configuration, reached] = await Promise.all([checkConfiguration(given), reach(given)]);
  const checks = [checkNode(), ...configuration, ...reached.checks];
  if (!reached.isGateway) return checks;
  const asked = await Promise.all([
    checkReady(given),
    checkRest(given),
    checkRpc(given),
    checkWebhook(given),
    checkDead(given),
    checkNotifications(given),
    checkBudgets(given),
    checkSchedules(given),
    checkMcp(given),
  ]);
  checks.push(...asked.flat());
  if (given.address.key === undefined && given.address.rpcToken === undefined)
    checks.push(
      failed(
        "tokens",
        "Without a key or a token nothing more can be checked",
        "set REST_API_KEY and RPC_TOKEN, or pass --key and --rpc-token",
      ),
    );
  if (given.options.turn) checks.push(await checkTurn(given));
  return checks;
}

function checkNode(): Check {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
  return major > 20 || (major === 20 && minor >= 19)
    ? ok("node", `Node ${process.versions.node}`)
    : failed("node", `Node ${process.versions.node} is too old for the gateway`, "install Node 20.19 or newer");
}

async function checkConfiguration({ options }: DoctorCall): Promise<Check[]> {
  const file = configFile(options.config, process.env);
  if (!existsSync(file))
    return [warning("config", `There is no ${file} here`, "agent-gateway init, if a gateway runs from this folder")];
  const { checkConfig } = await import("./check-config.ts");
  const { problems, warnings, summary } = await checkConfig(file, process.env).catch((error: Error) => ({
    problems: [{ words: error.message }],
    warnings: [],
    summary: "",
  }));
  const [first] = problems;
  const checks =
    first === undefined
      ? [ok("config", summary)]
      : [
          failed(
            "config",
            `${first.words}${problems.length > 1 ? ` (and ${problems.length - 1} more)` : ""}`,
            "agent-gateway check",
          ),
        ];
  for (const words of warnings) checks.push(warning("config", words, "agent-gateway check"));
  const secrets = join(dirname(file), "gateway.env");
  if (existsSync(secrets) && (statSync(secrets).mode & 0o077) !== 0)
    checks.push(warning("secrets", `Others on this machine can read ${secrets}`, `chmod 600 ${secrets}`));
  return checks;
}

const ONCE = { maxRetries: 0, timeoutMs: 5_000 };

/** Finds out if a gateway answers at the address. */
async function reach({ gateway, address, signal }: DoctorCall): Promise<{ checks: Check[]; isGateway: boolean }> {
  const { url, origins } = address;
  const from = origins.url === "default" ? "the default address" : `from the ${origins.url}`;
  const health = await gateway.ops
    .healthz({ signal, ...ONCE })
    .withResponse()
    .catch((error: GatewayError) => error);
  if (health instanceof Error)
    return {
      isGateway: false,
      checks: [
        failed(
          "gateway",
          `${url} (${from}): ${health.message.replace(/^ops\.healthz: /, "")}`,
          "agent-gateway serve, or name it: --url URL",
        ),
      ],
    };
  const checks = [ok("gateway", `${url} (${from}) answers, version ${health.data.version}`)];
  if (health.data.version !== version)
    checks.push(
      warning(
        "version",
        `The gateway has version ${health.data.version}, this command line ${version}`,
        "use the same version of both",
      ),
    );
  const { hostname, protocol } = new URL(url);
  if (protocol === "http:" && !/^(localhost|127\.|\[::1\])/.test(hostname))
    checks.push(
      warning(
        "tls",
        "Tokens go in clear text to another machine",
        "use https://, or name the network in gateway.clearTextFrom",
      ),
    );
  const theirs = Date.parse(health.response.headers.get("date") ?? "");
  if (Math.abs(theirs - Date.now()) > 60_000)
    checks.push(
      warning(
        "clock",
        `The clocks differ by ${Math.round(Math.abs(theirs - Date.now()) / 1_000)} s; signed webhooks may be refused`,
        "set both clocks by NTP",
      ),
    );
  return { isGateway: true, checks };
}

async function checkReady({ gateway, signal }: DoctorCall): Promise<Check[]> {
  const { parts } = await gateway.ops.readyz({ signal, ...ONCE });
  const bad = Object.entries(parts).filter(([, part]) => !part.ok);
  if (bad.length === 0) return [ok("ready", `The gateway accepts work: ${Object.keys(parts).join(", ")}`)];
  return bad.map(([name, { detail }]) =>
    failed("ready", `${name} is not ready${detail ? `: ${detail}` : ""}`, "look at the gateway's log"),
  );
}

type Door = { id: "key" | "rpcToken"; token: string | undefined; what: string; option: string };

/** Reports where a token was found, and if its surface accepts it. */
async function checkToken(
  { address }: DoctorCall,
  { id, token, what, option }: Door,
  call: () => Promise<unknown>,
): Promise<Check[]> {
  if (token === undefined)
    return [warning(what, address.unused[id]?.message ?? "none was found", `pass ${option}, or set ${VARIABLES[id]}`)];
  try {
    await call();
    return [ok(what, `from the ${address.origins[id]}, accepted`)];
  } catch (error) {
    const { name } = error as GatewayError;
    if (name === "forbidden") return [ok(what, `from the ${address.origins[id]}, accepted; it may not do everything`)];
    return [
      failed(
        what,
        `from the ${address.origins[id]}: ${wordsFor(failureOf(error, address, true), "agent-gateway doctor").split("\n")[0]}`,
        `pass the right one by ${option}`,
      ),
    ];
  }
}
const VARIABLES = {
  key: "REST_API_KEY",
  rpcToken: "RPC_TOKEN",
  webhookToken: "WEBHOOK_TOKEN",
};

function checkRest(given: DoctorCall): Promise<Check[]> {
  return checkToken(given, { id: "key", token: given.address.key, what: "rest key", option: "--key" }, async () =>
    given.gateway.skills.list({ signal: given.signal, ...ONCE }),
  );
}

async function checkRpc(given: DoctorCall): Promise<Check[]> {
  const { gateway, signal, address } = given;
  const checks: Check[] = [];
  const token = await checkToken(
    given,
    { id: "rpcToken", token: address.rpcToken, what: "rpc token", option: "--rpc-token" },
    async () => {
      const [health, { agents }] = await Promise.all([
        gateway.rpc.system.health({}, { signal, ...ONCE }),
        gateway.rpc.agent.list({}, { signal, ...ONCE }),
      ]);
      for (const part of health.parts) if (part.status === "degraded") checks.push(degraded(part));
      checks.push(
        health.store.durable
          ? ok("store", `${health.store.type} keeps what was acknowledged over a restart`)
          : warning(
              "store",
              `${health.store.type} forgets everything at a restart`,
              'set store: { type: "sqlite" } in the configuration',
            ),
      );
      for (const agent of agents) {
        if (agent.state === "failing")
          checks.push(
            failed(
              "agents",
              `${agent.agentName} fails`,
              `agent-gateway turns list --status failed --agent ${agent.agentName}`,
            ),
          );
        if (agent.paused)
          checks.push(
            warning("agents", `${agent.agentName} is paused`, `agent-gateway agents resume ${agent.agentName}`),
          );
      }
      if (agents.every(({ state, paused }) => state !== "failing" && !paused))
        checks.push(ok("agents", agents.map(({ agentName }) => agentName).join(", ")));
    },
  );
  return [...token, ...checks];
}

const NOTIFY = "notify.";

function degraded({ name, detail }: { name: string; detail: string | null }): Check {
  const words = detail ?? "degraded";
  if (!name.startsWith(NOTIFY)) return warning("health", `${name}: ${words}`, "see docs/operations.md");
  const endpoint = name.slice(NOTIFY.length);
  return warning("notify", `${endpoint}: ${words}`, `agent-gateway notifications test ${endpoint}`);
}

/** It is not tried: every webhook starts work or is recorded as refused. */
async function checkWebhook({ address: { webhookToken, origins, unused } }: DoctorCall): Promise<Check[]> {
  return webhookToken === undefined
    ? [
        warning(
          "webhook token",
          unused.webhookToken?.message ?? "none was found",
          `pass --webhook-token, or set ${VARIABLES.webhookToken}`,
        ),
      ]
    : [ok("webhook token", `from the ${origins.webhookToken}, not tried`)];
}

async function checkDead({ gateway, signal }: DoctorCall): Promise<Check[]> {
  try {
    const { events } = await gateway.events.list({ status: "dead", limit: 1 }, { signal, ...ONCE });
    return events.length === 0
      ? []
      : [
          warning(
            "events",
            "There are dead events: their turns failed three times",
            "agent-gateway events list --status dead",
          ),
        ];
  } catch {
    return []; // The key lacks the permission; its own check reports that.
  }
}

async function checkNotifications({ gateway, signal }: DoctorCall): Promise<Check[]> {
  try {
    const { notifications } = await gateway.notifications.list({ state: "failed", limit: 1 }, { signal, ...ONCE });
    const [last] = notifications;
    if (!last) return [];
    const words = `Some notifications failed, the latest for ${last.endpoint}`;
    return [warning("notify", words, "agent-gateway notifications list --state failed")];
  } catch {
    return []; // The key lacks the permission; its own check reports that.
  }
}

/** A spent budget is a decision of the operator, so it is only a warning. */
async function checkBudgets({ gateway, signal }: DoctorCall): Promise<Check[]> {
  try {
    const { budgets } = await gateway.budgets.list({ signal, ...ONCE });
    const scarce = budgets.filter(({ state }) => state !== "open").map(checkOfBudget);
    if (scarce.length > 0 || budgets.length === 0) return scarce;
    return [ok("budgets", budgets.map(({ name }) => name).join(", "))];
  } catch {
    return []; // As above.
  }
}

function checkOfBudget({ name, tokens, cost, state, then, resets_at: end }: Budget): Check {
  const [tokensPart, costPart] = [partOf(tokens), partOf(cost)];
  const unit = tokensPart >= costPart ? "tokens" : "cost";
  const used = `${Math.floor(Math.max(tokensPart, costPart) * 100)} % of its ${unit}`;
  if (state === "warning")
    return warning("budgets", `${name} is nearly spent: ${used}, resets at ${end}`, "agent-gateway budgets");
  const effect = then === "pause" ? "turns wait" : "turns are refused";
  return warning(
    "budgets",
    `${name} is spent (${used}): ${effect} until ${end}`,
    `agent-gateway budgets grant ${name} --${unit} N`,
  );
}

function partOf(use: Budget["tokens"]): number {
  return use ? use.used / (use.limit + use.granted) : 0;
}

async function checkSchedules({ gateway, signal }: DoctorCall): Promise<Check[]> {
  try {
    const { schedules } = await gateway.schedules.list({ signal, ...ONCE });
    const idle = schedules.flatMap(checkOfSchedule);
    if (idle.length > 0 || schedules.length === 0) return idle;
    return [ok("schedules", schedules.map(({ name }) => name).join(", "))];
  } catch {
    return []; // As above.
  }
}

function checkOfSchedule({ name, state, paused_at: since, last }: Schedule): Check[] {
  if (state === "paused")
    return [warning("schedules", `${name} has been paused since ${since}`, `agent-gateway schedules resume ${name}`)];
  if (last === null || last.outcome === "started") return [];
  const words = `${name} started no turn at ${last.planned_at}: ${last.reason}`;
  return [warning("schedules", words, `agent-gateway deliveries show ${last.delivery_id}`)];
}

/** Lists the tools of the key, which loads the server. While the server is off there is nothing to report. */
async function checkMcp({ gateway, address: { url, key }, signal }: DoctorCall): Promise<Check[]> {
  const { paths } = await gateway.ops.index({ signal, ...ONCE });
  if (key === undefined || paths.every(({ path }) => path !== "/mcp")) return [];
  const { listTools } = await import("./mcp-bridge.ts");
  try {
    const names = await listTools(url, key, AbortSignal.any([signal, AbortSignal.timeout(ONCE.timeoutMs)]));
    return [ok("mcp", `the key has ${count(names.length, "tool")} at ${url}/mcp`)];
  } catch (error) {
    const words = oneLine((error as Error).message);
    return [warning("mcp", `the tools at ${url}/mcp cannot be listed: ${words}`, "read the gateway's log")];
  }
}

async function checkTurn({ gateway, signal }: DoctorCall): Promise<Check> {
  const began = performance.now();
  try {
    const { turn_id } = await gateway.chat.send({ message: "Answer with one word: are you there?" }, { signal });
    return ok("turn", `The default agent answered in ${Math.round(performance.now() - began)} ms (${turn_id})`);
  } catch (error) {
    const [words = "", next = "agent-gateway turns list --status failed"] = wordsFor(
      error,
      "agent-gateway doctor",
    ).split("\nNext: ");
    return failed("turn", words, next);
  }
}
