/**
 * The rule of `agents`: a key or token that has them may use only these agents. An unknown name gets the same error as a forbidden one, so that a
 * caller cannot find out which agents exist.
 */
import { GatewayError } from "./errors.ts";
import { quoted } from "./fault-words.ts";

type Limited = { agents?: readonly string[] | undefined };
type Caller = Limited & { surface: string; name: string };

export function reaches({ agents }: Limited, agent: string | undefined): boolean {
  return agents === undefined || (agent !== undefined && agents.includes(agent));
}

/** True if a key or token has lost an agent: its open streams must end. */
export function isNarrowed(before: Limited, after: Limited): boolean {
  if (after.agents === undefined) return false;
  return before.agents === undefined || before.agents.some((agent) => !reaches(after, agent));
}

/** Throws `forbidden` if the caller may not use the agent, whether or not it exists. */
export function requireReach(caller: Caller, agent: string): void {
  if (!reaches(caller, agent)) throw unreachable(caller, `the agent ${quoted(agent)}`);
}

/** Throws `forbidden` for a caller with limited agents. `what` shows or changes all agents. */
export function requireAllAgents(caller: Caller, what: string): void {
  if (caller.agents !== undefined) throw unreachable(caller, `${what}, which concerns all agents`);
}

/** The most names that an error repeats. */
const LISTED = 10;

/** The refusal of a caller with limited agents. */
export function unreachable({ surface, name, agents = [] }: Caller, what: string): GatewayError {
  const who = `The ${surface === "rpc" ? "token" : "key"} \`${name}\``;
  const more = agents.length > LISTED ? " and others" : "";
  const its = `Its agents are limited to ${agents.slice(0, LISTED).map(quoted).join(", ")}${more}.`;
  return new GatewayError("forbidden", `${who} may not use ${what}. ${its}`);
}
