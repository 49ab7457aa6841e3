import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { configFile } from "./configured.ts";
import { asTyped } from "./typed.ts";

/** Describes the gateway that `agent-gateway serve` would run here. */
export function wouldServe(env: Record<string, string | undefined>): string {
  const file = configFile(undefined, env);
  const serve = asTyped("agent-gateway serve");
  const from = env.GATEWAY_CONFIG ? ", which GATEWAY_CONFIG names" : "";
  if (existsSync(file)) return `Here, ${serve} runs the gateway of ${resolve(file)}${from}.`;
  if (from) return `There is no ${file}${from}. ${asTyped("agent-gateway init FOLDER")} writes a configuration.`;
  return `There is no gateway.json5 in ${resolve(".")}. ${asTyped("agent-gateway init")} writes one.
Without it, ${serve} runs a try-out: an agent that repeats each message, a store in memory, and new secrets.`;
}
