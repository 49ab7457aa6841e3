import type { Backend } from "#backends/backend.ts";
import { createEchoBackend } from "#backends/echo.ts";
import type { AgentConfig, Config } from "#config/config.ts";
import type { ToolSource } from "#tools/tool.ts";

/** What answers for an agent, and what it may use. */
export type Answering = { backend: Backend; toolSource: ToolSource | undefined };

/** What of the configuration, beside the agent's own part, makes its backend. */
export type Shared = Pick<Config, "providers" | "tools">;

export type AnsweringFor = (name: string, agent: AgentConfig, shared: Shared) => Answering;

/** Makes the backend of one agent. All but `echo` load their code with their first turn. */
export const openBackend = (name: string, agent: AgentConfig, _shared: Shared): Backend => {
  if (agent.backend === "echo") return createEchoBackend(agent.echo);
  throw new Error(`the backend of ${name}, ${agent.backend}, is not there yet`);
};

const openTools = (_agent: AgentConfig, _shared: Shared): ToolSource | undefined => undefined;

/**
 * The backends of the agents as the configuration has them. One whose part of it is the same after a reload is kept, with its processes and
 * connections; one that nobody asked for is closed.
 */
export const createAgentBackends = () => {
  let open = new Map<string, Answering>();
  let next = new Map<string, Answering>();
  return {
    answering: ((name, agent, shared) => {
      const key = JSON.stringify([name, agent, agent.backend === "model" ? shared.providers : null, shared.tools]);
      const kept = open.get(key) ?? next.get(key);
      const one = kept ?? { backend: openBackend(name, agent, shared), toolSource: openTools(agent, shared) };
      next.set(key, one);
      return one;
    }) satisfies AnsweringFor as AnsweringFor,
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
