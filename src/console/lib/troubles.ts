import { plural } from "./format.ts";
import { DEAD, type Now } from "./live-now.ts";
import type { Work } from "./live-stream.ts";

/** A problem: its subject, its description, and the page with details. */
export type Trouble = { subject: string; words: string; path: string; isBad: boolean };

const NAMES: Readonly<Record<string, string>> = {
  store: "Store",
  queue: "Turn queue",
  events: "Events",
  memory: "Memory",
  eventLoop: "Event loop",
  "webhooks.token": "Webhook token",
  "rest.keys": "API keys",
};
const PATHS: Readonly<Record<string, string>> = {
  queue: "/activity?outcome=queued",
  events: "/events?status=dead",
  "rest.keys": "/settings",
};

/** The current problems, the most severe first. `reasonOf`: why the last turn of an agent failed, if that is known. */
export function troublesOf(
  { agents, parts }: Pick<Now, "agents" | "parts">,
  reasonOf: (agent: string) => string | undefined,
): Trouble[] {
  const paused = new Set(agents.flatMap((agent) => (agent.paused ? [`agents.${agent.agentName}`] : [])));
  const degraded = parts.filter(({ status }) => status !== "ok");
  const known = new Set(degraded.map(({ name }) => name));
  const failing = agents.filter(({ state, agentName }) => state === "failing" && !known.has(`agents.${agentName}`));
  const all = [
    ...degraded,
    ...failing.map(({ agentName }) => ({ name: `agents.${agentName}`, detail: null, status: "degraded" })),
    ...parts.filter(({ name, status, detail }) => status === "ok" && detail !== null && !paused.has(name)),
  ].map((part) => troubleOf(part, reasonOf));
  const waiting = agents.flatMap(({ agentName, paused: isPaused, queued, waitingEvents }) => {
    const what = [queued > 0 && plural(queued, "turn"), waitingEvents > 0 && plural(waitingEvents, "event")];
    if (!isPaused || queued + waitingEvents === 0) return [];
    const words = `paused, ${what.filter(Boolean).join(" and ")} waiting`;
    return [{ subject: agentName, words, path: pathOfAgent(agentName), isBad: false }];
  });
  return [...all, ...waiting].sort((one, other) => Number(other.isBad) - Number(one.isBad));
}

/** Why the newest failed work of an agent failed, unless it has completed other work since. */
export function causeOfWork(work: readonly Work[], agent: string): string | undefined {
  const last = work.find((one) => one.agent === agent && (one.outcome === "failed" || one.outcome === "completed"));
  const { detail = null } = last?.error ?? {};
  return last?.outcome === "failed" && detail !== null
    ? detail.replace(/^the (?:agent's service|remote agent|provider) answered /, "").replace(/\.+$/, "")
    : undefined;
}

type Part = { name: string; status: string; detail: string | null };

function troubleOf({ name, status, detail }: Part, reasonOf: (agent: string) => string | undefined): Trouble {
  const [, kind, which = ""] = /^(agents|channels|notify)\.(.*)$/.exec(name) ?? [];
  const words = lowered(detail ?? "degraded");
  const isBad = status !== "ok";
  if (kind === "channels")
    return { subject: which, words, path: `/activity?announcement=failed&channel=${encodeURIComponent(which)}`, isBad };
  if (kind === "notify")
    return {
      subject: `Endpoint ${which}`,
      words,
      path: `/webhooks?tab=notifications&endpoint=${encodeURIComponent(which)}`,
      isBad,
    };
  if (kind === "agents") {
    const reason = reasonOf(which);
    const path = isBad ? `/activity?agent=${encodeURIComponent(which)}&outcome=failed` : pathOfAgent(which);
    return { subject: which, words: isBad && reason ? `last turn failed: ${reason}` : words, path, isBad };
  }
  const dead = name === "events" ? DEAD.exec(detail ?? "")?.[1] : undefined;
  return {
    subject: NAMES[name] ?? name,
    words: dead
      ? lowered((detail ?? "").replace(DEAD, `${plural(Number(dead), "event")} failed after all attempts.`))
      : words,
    path: PATHS[name] ?? "/settings/configuration",
    isBad: isBad || dead !== undefined,
  };
}

function pathOfAgent(name: string): string {
  return `/agents/${encodeURIComponent(name)}`;
}

/** A sentence as the rest of a line. */
function lowered(sentence: string): string {
  const words = sentence.trim().replace(/\.$/, "");
  return /^[A-Z][a-z]/.test(words) ? words.charAt(0).toLowerCase() + words.slice(1) : words;
}
