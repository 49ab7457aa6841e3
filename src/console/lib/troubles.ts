import { plural } from "#console/lib/format.ts";
import type { RpcMethods } from "#generated/clients/typescript/src/rpc.ts";

type Health = RpcMethods["system.health"]["result"];
type Agent = RpcMethods["agent.list"]["result"]["agents"][number];

/** Something that is wrong, in words, with where to look. */
export type Wrong = { what: string; detail: string; path: string };

const NAMES: Readonly<Record<string, string>> = {
  store: "The store",
  queue: "The queue of turns",
  events: "System events",
  memory: "Memory",
  eventLoop: "The event loop",
};

function partOf({ name, detail }: Health["parts"][number]): Wrong {
  const [kind = "", ...rest] = name.split(".");
  const which = rest.join(".");
  const words = detail ?? "It is degraded.";
  if (kind === "agents")
    return { what: `The agent ${which}`, detail: words, path: `/agents/${encodeURIComponent(which)}` };
  if (kind === "channels") return { what: `The channel ${which}`, detail: words, path: "/activity" };
  if (kind === "events") return { what: NAMES.events ?? kind, detail: words, path: "/events?status=dead" };
  return {
    what: NAMES[kind] ?? name,
    detail: words,
    path: kind === "queue" ? "/activity?outcome=queued" : "/settings/configuration",
  };
}

/** An agent that is paused is wrong only as far as something waits for it. */
function waitOf({ agentName, queued, waitingEvents }: Agent): Wrong {
  const waiting = [queued > 0 && plural(queued, "turn"), waitingEvents > 0 && plural(waitingEvents, "event")];
  return {
    what: `The agent ${agentName} is paused`,
    detail: `${waiting.filter(Boolean).join(" and ")} ${queued + waitingEvents === 1 ? "waits" : "wait"} until it is resumed.`,
    path: `/agents/${encodeURIComponent(agentName)}`,
  };
}

/** All that is wrong now, the gravest first: parts that are degraded, then those that only have something to say. */
export function troublesOf(health: Health | undefined, agents: readonly Agent[]): Wrong[] {
  const degraded = (health?.parts ?? []).filter(({ status }) => status !== "ok").map(partOf);
  const told = new Set(degraded.map(({ what }) => what));
  const failing = agents
    .filter(({ state, agentName }) => state === "failing" && !told.has(`The agent ${agentName}`))
    .map(({ agentName }) => ({
      what: `The agent ${agentName}`,
      detail: "Its backend keeps failing. Its turns are tried again, and fail with a reason.",
      path: `/agents/${encodeURIComponent(agentName)}`,
    }));
  const paused = agents.filter((agent) => agent.paused);
  const waiting = paused.filter(({ queued, waitingEvents }) => queued + waitingEvents > 0).map(waitOf);
  const ofPaused = new Set(paused.map(({ agentName }) => `agents.${agentName}`));
  const warned = (health?.parts ?? [])
    .filter(({ name, status, detail }) => status === "ok" && detail !== null && !ofPaused.has(name))
    .map(partOf);
  return [...degraded, ...failing, ...waiting, ...warned];
}
