/** Finds the agents, sessions and turns that a caller names. Handlers find them only through this module, which applies the rule of `agents`. */
import type { GatewayError } from "#kit/errors.ts";
import { quoted } from "#kit/fault-words.ts";
import { isOfSchedule, isOfWebhook } from "#kit/ids.ts";
import { reaches, requireReach, unreachable } from "#kit/reach.ts";
import type { HealthPart, Store, Turn } from "#store/store.ts";
import type { Agent, Agents } from "./agents/agents.ts";
import type { Caller } from "./call.ts";
import { agentOfPart } from "./health.ts";
import { agentPartOf, isPartOf } from "./sessions/sessions.ts";
import { sessionNotFound } from "./sessions/stored-sessions.ts";
import { type Turns, turnNotFound } from "./turns/turns.ts";

type Sessions = Pick<Store, "getSession">;

/** The named agent, or the default one. Throws `forbidden` and `agent-not-found`. */
export function agentFor(agents: Agents, caller: Caller, name: string | undefined): Agent {
  if (name !== undefined) requireReach(caller, name);
  else if (!reaches(caller, agents.defaultName())) throw unreachable(caller, "the default agent");
  return agents.get(name, caller.agents);
}

/** The agent of this name, if the caller may use it. */
export function findFor(agents: Agents, caller: Caller, name: string): Agent | undefined {
  return reaches(caller, name) ? agents.find(name) : undefined;
}

/** The agents that the caller may use, in the configuration's order. */
export function agentsFor(agents: Agents, caller: Caller): readonly Agent[] {
  const all = agents.list();
  return caller.agents === undefined ? all : all.filter(({ name }) => reaches(caller, name));
}

/** The parts of health that concern every agent. The details of some count the work of all agents. */
const COMMON_PARTS = new Map([
  ["store", { counts: false }],
  ["queue", { counts: true }],
  ["events", { counts: true }],
  ["memory", { counts: false }],
  ["eventLoop", { counts: false }],
]);
const FULL = "Its limit is reached: new work is refused until there is space.";

/** The parts of health for the caller. With limited agents, these are the common ones, without counts, and those of its agents. */
export function partsFor(caller: Caller, parts: readonly HealthPart[]): HealthPart[] {
  if (caller.agents === undefined) return [...parts];
  return parts.flatMap((part) => {
    const agent = agentOfPart(part);
    if (agent !== undefined) return reaches(caller, agent) ? [part] : [];
    const common = COMMON_PARTS.get(part.name);
    if (!common) return [];
    return [common.counts ? { ...part, detail: part.status === "degraded" ? FULL : null } : part];
  });
}

/** The agents of a list: the named one, or all that the caller may use; undefined for all agents. */
export function listedFor(caller: Caller, name: string | undefined): readonly string[] | undefined {
  if (name === undefined) return caller.agents;
  requireReach(caller, name);
  return [name];
}

/**
 * Throws `forbidden` for a session id that names another agent, because the first message to an id creates its session. The id of a webhook's or a schedule's
 * session does not name its agent, so the session must exist: then the result is a promise.
 */
export function requireOwnForm(
  store: Sessions,
  caller: Caller,
  sessionId: string | undefined,
): undefined | Promise<void> {
  if (caller.agents === undefined || sessionId === undefined) return undefined;
  if (isOfWebhook(sessionId) || isOfSchedule(sessionId)) return requireExisting(store, caller, sessionId);
  const part = agentPartOf(sessionId);
  if (part === undefined || caller.agents.some((agent) => isPartOf(agent, part))) return undefined;
  throw reservedForAnother(caller, sessionId);
}

async function requireExisting(store: Sessions, caller: Caller, sessionId: string): Promise<void> {
  if (!reaches(caller, (await store.getSession(sessionId))?.agent)) throw reservedForAnother(caller, sessionId);
}

function reservedForAnother(caller: Caller, sessionId: string): GatewayError {
  return unreachable(caller, `the session ${quoted(sessionId)}, whose id is reserved for another agent`);
}

/** Throws `session-not-found` if the caller may not use the agent of the session. */
export async function requireSession(store: Sessions, caller: Caller, sessionId: string) {
  if (caller.agents === undefined) return;
  if (!reaches(caller, (await store.getSession(sessionId))?.agent)) throw sessionNotFound(sessionId);
}

/** The turn with this id. Throws `turn-not-found`, also if the caller may not use its agent. */
export async function turnFor(turns: Pick<Turns, "get">, caller: Caller, turnId: string): Promise<Turn> {
  const turn = await turns.get(turnId);
  if (!reaches(caller, turn.agent)) throw turnNotFound(turnId);
  return turn;
}
