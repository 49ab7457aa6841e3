import type { Agent } from "#core/agents/agents.ts";
import { skillTools } from "#core/skills/skill-tools.ts";
import type { Skills } from "#core/skills/skills.ts";
import type { Clock } from "#kit/clock.ts";
import { abortSignalOf, type StopSignal } from "#kit/stop-signal.ts";
import { type Tool, ToolError, type ToolSource } from "#tools/tool.ts";
import type { Note } from "./run-turn.ts";
import type { TurnWatch } from "./turn-watch.ts";

type TurnToolParts = {
  agent: Agent;
  skills: Skills;
  hops: number;
  clock: Clock;
  note: (note: Note) => void;
  watch: TurnWatch | undefined;
};

/** What a turn may call: the skills of its agent, and its agent's servers of tools. Each call is told on its timeline. */
export const toolsOf = (parts: TurnToolParts, signal: StopSignal): readonly Tool[] | Promise<readonly Tool[]> => {
  const { agent, skills } = parts;
  const own = skillTools(skills, agent);
  return agent.toolSource
    ? withSource(parts, own, agent.toolSource, abortSignalOf(signal))
    : own.map((tool) => told(parts, tool));
};

const withSource = async (
  parts: TurnToolParts,
  own: readonly Tool[],
  source: ToolSource,
  signal: AbortSignal,
): Promise<readonly Tool[]> => {
  const { hops, note, watch } = parts;
  const starting = source.tools(signal, hops);
  const { tools, missing } = await (watch ? watch.pause(starting) : starting);
  for (const { server, reason } of missing) note({ name: "tool.unavailable", detail: { server, reason } });
  return [...own, ...tools].map((tool) => told(parts, tool));
};

const told = ({ clock, note, watch }: TurnToolParts, tool: Tool): Tool => ({
  ...tool,
  async call(args, signal) {
    const began = clock.monotonic();
    const tell = (detail: object) =>
      note({ name: "tool.called", detail: { tool: tool.name, ms: Math.round(clock.monotonic() - began), ...detail } });
    try {
      const work = tool.call(args, signal);
      const answer = await (watch ? watch.pause(work) : work);
      tell({ ok: true, characters: answer.length });
      return answer;
    } catch (error) {
      const reason = error instanceof ToolError ? error.message : "the tool failed";
      tell({ ok: false, reason });
      throw error;
    }
  },
});
