import type { Backend } from "#backends/backend.ts";
import { createEchoBackend } from "#backends/echo.ts";
import { lazyBackend } from "#backends/lazy.ts";
import { knownOf } from "#backends/model/known.ts";
import type { AgentConfig, Config, ProviderConfig, ToolServerConfig } from "#config/config.ts";
import type { Clock } from "#core/clock.ts";
import type { Said } from "#core/programs/said.ts";
import type { Events } from "#observe/events.ts";
import { lazyTools } from "#tools/lazy.ts";
import type { ToolSource } from "#tools/tool.ts";
import { version } from "./version.ts";

/** What answers for an agent, and what it may use. */
export type Answering = { backend: Backend; toolSource: ToolSource | undefined };

/** What of the configuration, beside the agent's own part, makes its backend. */
export type Shared = Pick<Config, "providers" | "tools">;

/** What backends and tools use of the gateway. */
export type AnsweringParts = { clock: Clock; events: Events };

export type AnsweringFor = (name: string, agent: AgentConfig, shared: Shared) => Answering;

/** Makes the backend of one agent. All but `echo` load their code with their first turn. */
export const openBackend = (
  name: string,
  agent: AgentConfig,
  { providers }: Shared,
  parts: AnsweringParts,
): Backend => {
  const models = namedModels(agent);
  if (agent.backend === "echo") return createEchoBackend(agent.echo);
  if (agent.backend === "command" && agent.command) {
    const settings = { ...agent.command, ...parts, agent: name, models };
    return lazyBackend({ kind: "command", models }, async () => {
      return (await import("#backends/command/command.ts")).createCommandBackend(settings);
    });
  }
  const { http, a2a, timeouts } = agent;
  if (agent.backend === "http" && http) {
    const settings = { ...http, agent: name, models, connectMs: timeouts.connect, clock: parts.clock };
    return lazyBackend({ kind: "http", models }, async () => {
      return (await import("#backends/http/http.ts")).createHttpBackend(settings);
    });
  }
  if (agent.backend === "acp" && agent.acp) {
    const { connect: connectMs, silence: silenceMs } = agent.timeouts;
    const settings = { ...agent.acp, ...parts, agent: name, models, connectMs, silenceMs, version };
    return lazyBackend({ kind: "acp", models }, async () => {
      return (await import("#backends/acp/acp.ts")).createAcpBackend(settings);
    });
  }
  if (agent.backend === "model") {
    const { fallbacks, model, modelTable, steps, summaryModel, timeouts } = agent;
    const table = Object.fromEntries(
      Object.entries(modelTable).map(([key, { provider, ...settings }]) => {
        return [key, { ...settings, providerName: provider, provider: providers[provider] as ProviderConfig }];
      }),
    );
    const settings = { table, model, fallbacks, summaryModel, steps, connectMs: timeouts.connect, clock: parts.clock };
    return lazyBackend(knownOf(settings), async () => {
      return (await import("#backends/model/model.ts")).createModelBackend(settings);
    });
  }
  if (agent.backend === "a2a" && a2a) {
    const settings = { ...a2a, connectMs: timeouts.connect, clock: parts.clock };
    return lazyBackend({ kind: "a2a", models: [] }, async () => {
      return (await import("#backends/a2a/a2a.ts")).createA2aBackend(settings);
    });
  }
  throw new Error(`the agent ${name} lacks what its backend ${agent.backend} needs`);
};

/** The models that a caller may name, of an agent that is handed their names. */
const namedModels = ({ model, models }: AgentConfig): string[] => [
  ...new Set(model === undefined ? models : [model, ...models]),
];

const openTools = (
  name: string,
  { tools: wanted }: AgentConfig,
  { tools }: Shared,
  { clock, events }: AnsweringParts,
): ToolSource | undefined => {
  const named = Object.keys(tools).filter((server) => wanted.some((tool) => tool.startsWith(`${server}/`)));
  if (named.length === 0) return undefined;
  const servers = named.map((server) => {
    const { callTimeout, maxOutput, ...reach } = tools[server] as ToolServerConfig;
    return { name: server, version, reach, callMs: callTimeout, outputCharacters: maxOutput };
  });
  const say = (server: string, said: Said) => events.programSaid({ program: `${name}/${server}`, ...said });
  return lazyTools(async () =>
    (await import("#tools/mcp/open.ts")).openToolServers({ servers, wanted }, { clock, say }),
  );
};

/**
 * The backends of the agents as the configuration has them. One whose part of it is the same after a reload is kept, with its processes and
 * connections; one that nobody asked for is closed.
 */
export const createAgentBackends = (parts: AnsweringParts) => {
  let open = new Map<string, Answering>();
  let next = new Map<string, Answering>();
  return {
    answering(name: string, agent: AgentConfig, shared: Shared): Answering {
      const providers = agent.backend === "model" ? shared.providers : null;
      const key = JSON.stringify([name, agent, providers, agent.tools.length > 0 ? shared.tools : null]);
      const kept = open.get(key) ?? next.get(key);
      const one = kept ?? {
        backend: openBackend(name, agent, shared, parts),
        toolSource: openTools(name, agent, shared, parts),
      };
      next.set(key, one);
      return one;
    },
    /** Those that were asked for since the last time are in force: closes the others. */
    async settle(): Promise<void> {
      const gone = [...open].filter(([key]) => !next.has(key)).map(([, one]) => one);
      open = next;
      next = new Map();
      await closeAll(gone);
    },
    async close(): Promise<void> {
      await closeAll([...open.values(), ...next.values()]);
    },
  };
};

const closeAll = async (all: readonly Answering[]): Promise<void> => {
  await Promise.allSettled(
    all.flatMap(({ backend, toolSource }) => [backend.close?.(), toolSource?.[Symbol.asyncDispose]()]),
  );
};
