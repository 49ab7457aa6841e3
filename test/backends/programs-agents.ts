import { expect } from "vitest";
import { type SomeConfig, type Start, startGateway } from "#test/harness/gateway.ts";
import { agentProgram } from "./stand-ins/acp.ts";
import { isAlive, pidsIn, sh } from "./stand-ins/programs.ts";

const DEAF = "trap '' TERM; sleep 60 & echo \"$$ $!.\"; while :; do sleep 1; done";

export const AGENTS = {
  text: { backend: "command", command: { run: sh("command-agent.sh", "echo", "text") } },
  lines: { backend: "command", command: { run: sh("command-agent.sh", "echo", "json-lines"), output: "json-lines" } },
  slow: { backend: "command", command: { run: sh("command-agent.sh", "slow", "text") } },
  failing: { backend: "command", command: { run: ["sh", "-c", "echo 'secret plans' >&2; exit 3"] } },
  waiting: { backend: "command", command: { run: ["sh", "-c", 'echo "$$ $$."; exec sleep 60'] } },
  deaf: { backend: "command", command: { run: ["sh", "-c", DEAF] } },
  coder: { backend: "acp", acp: { run: agentProgram() } },
} as const satisfies SomeConfig["agents"];
export type Agent = keyof typeof AGENTS;

export function configOf(...agents: Agent[]): SomeConfig {
  return {
    gateway: { defaultAgent: agents[0] as string },
    agents: Object.fromEntries(agents.map((agent) => [agent, AGENTS[agent]])),
  };
}
export function gatewayWith(agents: Agent[], more: Omit<Start, "config"> = {}) {
  return startGateway({ config: configOf(...agents), ...more });
}
type Gateway = Awaited<ReturnType<typeof gatewayWith>>;

/** Sends a message whose reply starts with the ids of processes, and continues. */
export async function sendToDeaf({ rest }: Pick<Gateway, "rest">, agent: Agent, message = "Hi") {
  // A reader may disconnect: the turn continues.
  const leaving = new AbortController();
  const stream = await rest.stream("chat.send", { body: { message, agent }, signal: leaving.signal });
  let told = "";
  let turnId = "";
  for await (const { event, data } of stream.events) {
    turnId = String((data as { turn_id?: unknown }).turn_id ?? turnId);
    if (event === "message.delta") told += (data as { text: string }).text;
    if (told.trimEnd().endsWith(".")) break;
  }
  leaving.abort();
  const pids = pidsIn(told);
  expect(pids.filter(isAlive)).toHaveLength(2);
  return { pids, turnId };
}
