import { isDeepStrictEqual } from "node:util";
import type { Backend } from "#backends/backend.ts";
import { createEchoBackend } from "#backends/echo.ts";
import { lazyBackend } from "#backends/lazy.ts";
import { knownOf } from "#backends/model/model-table.ts";
import type { AgentConfig, Config, ProviderConfig, ToolServerConfig } from "#config/config.ts";
import type { Clock } from "#kit/clock.ts";
import type { StderrLine } from "#kit/programs/stderr.ts";
import type { Events } from "#observe/events.ts";
import { lazyTools } from "#tools/lazy.ts";
import type { ToolSource } from "#tools/tool.ts";
import { version } from "../version.ts";

/** The backend that answers for an agent, and the tools that it may use. */
type Answering = { backend: Backend; toolSource: ToolSource | undefined };

/** The parts of the configuration from which the backend of an agent is created, in addition to the agent's own settings. */
export type Shared = Pick<Config, "providers" | "tools" | "limits">;

/** The parts of the gateway that backends and tools use. */
type AnsweringParts = { clock: Clock; events: Events };

export type AnsweringFor = (name: string, agent: AgentConfig, shared: Shared) => Answering;

/** Makes the backend of one agent. All but `echo` load their code with their first turn. */
function openBackend(name: string, agent: AgentConfig, { providers, limits }: Shared, parts: AnsweringParts): Backend {
  const { timeouts, command, http, acp, a2a } = agent;
  const { clock } = parts;
  const { connect: connectMs, silence: silenceMs } = timeouts;
  // The models that a caller may name, of an agent that is handed their names.
  const models = [...new Set(agent.model === undefined ? agent.models : [agent.model, ...agent.models])];
  const outside = { kind: agent.backend, models, asksOutside: true };
  const common = { agent: name, models };
  if (agent.backend === "echo") return createEchoBackend(agent.echo);
  if (agent.backend === "model") {
    const settings = { ...modelSettingsOf(agent, providers), limits: toolLimitsOf(limits), connectMs, clock };
    return lazyBackend(knownOf(settings), async () =>
      (await import("#backends/model/model.ts")).createModelBackend(settings),
    );
  }
  if (agent.backend === "command" && command)
    return lazyBackend(outside, async () =>
      (await import("#backends/command/command.ts")).createCommandBackend({ ...command, ...parts, ...common }),
    );
  if (agent.backend === "http" && http)
    return lazyBackend(outside, async () =>
      (await import("#backends/http/http.ts")).createHttpBackend({ ...http, ...common, connectMs, clock }),
    );
  if (agent.backend === "acp" && acp)
    return lazyBackend(outside, async () => {
      const { createAcpBackend } = await import("#backends/acp/acp.ts");
      return createAcpBackend({ ...acp, ...parts, ...common, connectMs, silenceMs, version });
    });
  if (agent.backend === "a2a" && a2a)
    return lazyBackend({ ...outside, models: [] }, async () =>
      (await import("#backends/a2a/a2a.ts")).createA2aBackend({ ...a2a, connectMs, clock }),
    );
  throw new Error(`the agent ${name} lacks what its backend ${agent.backend} needs`);
}

function toolLimitsOf({ toolArguments, toolMessages }: Shared["limits"]) {
  return { toolArguments, toolMessages };
}

function modelSettingsOf(
  { fallbacks, model, modelTable, steps, summaryModel }: AgentConfig,
  providers: Shared["providers"],
) {
  const rows = Object.entries(modelTable).map(([name, { provider, ...settings }]) => {
    return [name, { ...settings, providerName: provider, provider: providers[provider] as ProviderConfig }] as const;
  });
  return { table: Object.fromEntries(rows), model, fallbacks, summaryModel, steps };
}

function openTools(
  name: string,
  { tools: wanted }: AgentConfig,
  { tools }: Shared,
  { clock, events }: AnsweringParts,
): ToolSource | undefined {
  const named = Object.keys(tools).filter((server) => wanted.some((tool) => tool.startsWith(`${server}/`)));
  if (named.length === 0) return undefined;
  const servers = named.map((server) => {
    const { callTimeout, maxOutput, ...reach } = tools[server] as ToolServerConfig;
    return { name: server, version, reach, callMs: callTimeout, outputCharacters: maxOutput };
  });
  const say = (server: string, said: StderrLine) => events.programSaid({ program: `${name}/${server}`, ...said });
  const failed = (server: string, reason: string) => events.toolsUnavailable({ server: `${name}/${server}`, reason });
  return lazyTools(async () =>
    (await import("#tools/mcp/source.ts")).openToolServers({ servers, wanted }, { clock, say, failed }),
  );
}

/** The backends that one configuration asks for. */
export type Generation = {
  answering: AnsweringFor;
  /** It is in force: closes what only the one before had. */
  settle(): Promise<void>;
  /** It never will be: closes what only this one has. */
  giveUp(): Promise<void>;
};

/**
 * The backends of the configured agents. A backend whose part of the configuration is the same after a reload remains, with its processes and
 * connections. A generation is settled or discarded before the next starts.
 */
export function createAgentBackends(parts: AnsweringParts) {
  let inForce: ReadonlyMap<string, Held> = new Map();
  let coming: ReadonlyMap<string, Held> = new Map();

  const next = (): Generation => {
    const mine = new Map<string, Held>();
    coming = mine;
    return {
      answering(name, agent, shared) {
        const ofModels = agent.backend === "model" && [shared.providers, toolLimitsOf(shared.limits)];
        const part = [agent, ofModels, agent.tools.length > 0 && shared.tools];
        const stored = inForce.get(name);
        const held =
          stored && isDeepStrictEqual(stored.part, part) ? stored : { part, one: open(name, agent, shared, parts) };
        mine.set(name, held);
        return held.one;
      },
      async settle() {
        const before = inForce;
        inForce = mine;
        await closeAll(before, mine);
      },
      giveUp: () => closeAll(mine, inForce),
    };
  };

  const close = async (): Promise<void> => {
    await Promise.all([closeAll(inForce), closeAll(coming, inForce)]);
  };
  return { next, close };
}

/** The backend and tools of an agent, with its part of the configuration. */
type Held = { part: unknown; one: Answering };

function open(name: string, agent: AgentConfig, shared: Shared, parts: AnsweringParts): Answering {
  return {
    backend: openBackend(name, agent, shared, parts),
    toolSource: openTools(name, agent, shared, parts),
  };
}

/** Closes all except the remaining ones. */
async function closeAll(all: ReadonlyMap<string, Held>, stored?: ReadonlyMap<string, Held>): Promise<void> {
  const removed = [...all].filter(([name, held]) => stored?.get(name) !== held).map(([, { one }]) => one);
  await Promise.allSettled(
    removed.flatMap(({ backend, toolSource }) => [backend.close?.(), toolSource?.[Symbol.asyncDispose]()]),
  );
}
