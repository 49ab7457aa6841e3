import type { Backend } from "#backends/backend.ts";
import { createEchoBackend } from "#backends/echo.ts";
import { lazyBackend } from "#backends/lazy.ts";
import { knownOf } from "#backends/model/known.ts";
import type { AgentConfig, Config, ProviderConfig, ToolServerConfig } from "#config/config.ts";
import type { Clock } from "#kit/clock.ts";
import type { StderrLine } from "#kit/programs/stderr.ts";
import type { Events } from "#observe/events.ts";
import { lazyTools } from "#tools/lazy.ts";
import type { ToolSource } from "#tools/tool.ts";
import { version } from "../version.ts";

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
    return lazyBackend({ kind: "command", models, asksOutside: true }, async () => {
      return (await import("#backends/command/command.ts")).createCommandBackend(settings);
    });
  }
  const { http, a2a, timeouts } = agent;
  if (agent.backend === "http" && http) {
    const settings = { ...http, agent: name, models, connectMs: timeouts.connect, clock: parts.clock };
    return lazyBackend({ kind: "http", models, asksOutside: true }, async () => {
      return (await import("#backends/http/http.ts")).createHttpBackend(settings);
    });
  }
  if (agent.backend === "acp" && agent.acp) {
    const { connect: connectMs, silence: silenceMs } = agent.timeouts;
    const settings = { ...agent.acp, ...parts, agent: name, models, connectMs, silenceMs, version };
    return lazyBackend({ kind: "acp", models, asksOutside: true }, async () => {
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
    return lazyBackend({ kind: "a2a", models: [], asksOutside: true }, async () => {
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
  const say = (server: string, said: StderrLine) => events.programSaid({ program: `${name}/${server}`, ...said });
  const failed = (server: string, reason: string) => events.toolsUnavailable({ server: `${name}/${server}`, reason });
  return lazyTools(async () =>
    (await import("#tools/mcp/source.ts")).openToolServers({ servers, wanted }, { clock, say, failed }),
  );
};

/** The backends that one configuration asks for. */
export type Generation = {
  answering: AnsweringFor;
  /** It is in force: closes what only the one before had. */
  settle(): Promise<void>;
  /** It never will be: closes what only this one has. */
  giveUp(): Promise<void>;
};

/**
 * The backends of the agents as the configuration has them. One whose part of it is the same after a reload is kept, with its processes and
 * connections. Several configurations may be on their way at once.
 */
export const createAgentBackends = (parts: AnsweringParts) => {
  const open = new Map<string, { one: Answering; uses: number }>();
  let inForce: ReadonlySet<string> = new Set();

  const letGo = async (keys: ReadonlySet<string>): Promise<void> => {
    const gone: Answering[] = [];
    for (const key of keys) {
      const held = open.get(key);
      if (!held || --held.uses > 0) continue;
      open.delete(key);
      gone.push(held.one);
    }
    await closeAll(gone);
  };

  const next = (): Generation => {
    const keys = new Set<string>();
    const answering: AnsweringFor = (name, agent, shared) => {
      const providers = agent.backend === "model" ? shared.providers : null;
      const key = JSON.stringify([name, agent, providers, agent.tools.length > 0 ? shared.tools : null]);
      const held = open.get(key) ?? {
        one: { backend: openBackend(name, agent, shared, parts), toolSource: openTools(name, agent, shared, parts) },
        uses: 0,
      };
      open.set(key, held);
      if (!keys.has(key)) held.uses++;
      keys.add(key);
      return held.one;
    };
    return {
      answering,
      async settle() {
        const before = inForce;
        inForce = keys;
        await letGo(before);
      },
      giveUp: () => letGo(keys),
    };
  };

  return { next, close: () => closeAll([...open.values()].map(({ one }) => one)) };
};

const closeAll = async (all: readonly Answering[]): Promise<void> => {
  await Promise.allSettled(
    all.flatMap(({ backend, toolSource }) => [backend.close?.(), toolSource?.[Symbol.asyncDispose]()]),
  );
};
