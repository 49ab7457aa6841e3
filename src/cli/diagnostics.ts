import { closeSync, openSync, rmSync, writeFileSync } from "node:fs";
import { release } from "node:os";
import { version } from "../version.ts";
import type { Calling } from "./calling.ts";
import { CliError } from "./failures.ts";
import { fileFault, needFolderOf } from "./values.ts";

type Part = [name: string, read: () => PromiseLike<unknown>];

/** Facts that help to find a fault. A part that cannot be read has the reason in its place. */
export async function gatherDiagnostics({
  gateway,
  address,
  signal,
}: Calling<object>): Promise<Record<string, unknown>> {
  const { rpc, ops } = gateway;
  const requestOptions = { signal, maxRetries: 0, timeoutMs: 10_000 };
  const parts: Part[] = [
    ["readiness", () => ops.readyz(requestOptions)],
    ["health", () => rpc.system.health({}, requestOptions)],
    ["info", () => rpc.system.info({}, requestOptions)],
    ["agents", () => rpc.agent.list({}, requestOptions)],
    ["configuration", () => gateway.config.get(requestOptions)],
    ["mappings", () => gateway.mappings.list(requestOptions)],
    [
      "refusedDeliveries",
      () => gateway.deliveries.list({ outcome: "refused", limit: 20 }, requestOptions).then(withoutWords),
    ],
    [
      "failedDeliveries",
      () => gateway.deliveries.list({ outcome: "failed", limit: 20 }, requestOptions).then(withoutWords),
    ],
    ["failedTurns", () => gateway.turns.list({ status: "failed", limit: 20 }, requestOptions).then(withoutWords)],
    [
      "deadEvents",
      () =>
        gateway.events
          .list({ status: "dead", limit: 20 }, requestOptions)
          .then(({ events }) => events.map(({ text: _, metadata: __, ...event }) => event)),
    ],
    ["failedNotifications", () => gateway.notifications.list({ state: "failed", limit: 20 }, requestOptions)],
    ["budgets", () => gateway.budgets.list(requestOptions)],
    ["schedules", () => gateway.schedules.list(requestOptions)],
    ["usage", () => rpc.usage.stats({}, requestOptions)],
    ["metrics", () => ops.metrics(requestOptions)],
  ];
  const read = parts.map(async ([name, call]) => [
    name,
    await call().then(
      (value) => value,
      (error: Error) => ({ error: error.message }),
    ),
  ]);
  const gathered = Object.fromEntries(await Promise.all(read)) as Record<string, unknown>;
  const about = {
    at: new Date().toISOString(),
    commandLine: version,
    node: process.version,
    platform: `${process.platform} ${process.arch} ${release()}`,
    gateway: address.url,
  };
  const { credentials, webhookToken } = address;
  const secrets = [...credentials.rest, ...credentials.rpc].map(({ token }) => token);
  return withoutSecrets({ about, ...gathered }, [...secrets, webhookToken]) as Record<string, unknown>;
}

/** Lists of deliveries and turns without the first words of messages and replies. */
function withoutWords(list: object): unknown {
  return JSON.parse(JSON.stringify(list, (name, value) => (/^(?:reply_)?preview$/.test(name) ? undefined : value)));
}

/** A final check: a token of the caller is never included, in whatever part it would be. */
function withoutSecrets(value: unknown, secrets: readonly (string | undefined)[]): unknown {
  const known = secrets.filter((secret) => secret !== undefined && secret.length >= 8) as string[];
  const text = known.reduce(
    (all, secret) => all.replaceAll(JSON.stringify(secret).slice(1, -1), "[hidden]"),
    JSON.stringify(value),
  );
  return JSON.parse(text);
}

/** Writes a new file completely, or leaves none. */
export function writeNew(file: string, text: string, mode: number, next = "name another file"): void {
  needFolderOf(file);
  let opened: number | undefined;
  try {
    opened = openSync(file, "wx", mode);
    writeFileSync(opened, text);
  } catch (error) {
    if (opened !== undefined) rmSync(file, { force: true });
    throw new CliError(`${file} cannot be written: ${fileFault(error)}.`, 1, next);
  } finally {
    if (opened !== undefined) closeSync(opened);
  }
}
