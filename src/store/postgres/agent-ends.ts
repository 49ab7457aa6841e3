/** How an agent's last turns ended; `failing` is null while none has run to an end. */
export type EndedAgent = { agent: string; endedAt: number; failing: boolean | null; failingAt: number | null };

/** The later of two: each of the two things that are known by its own time. */
const later = (a: EndedAgent | undefined, b: EndedAgent): EndedAgent => {
  const decisive = a && (a.failingAt ?? 0) > (b.failingAt ?? 0) ? a : b;
  return { ...decisive, endedAt: Math.max(a?.endedAt ?? 0, b.endedAt) };
};

/** What is known of how each agent's last turns ended: here at once, elsewhere as of the last look. */
export const createAgentEnds = () => {
  const own = new Map<string, EndedAgent>();
  let others = new Map<string, EndedAgent>();
  return {
    own(end: EndedAgent): void {
      own.set(end.agent, later(own.get(end.agent), end));
    },
    others(ended: readonly EndedAgent[]): void {
      others = new Map();
      for (const end of ended) others.set(end.agent, later(others.get(end.agent), end));
    },
    of(agent: string): { lastEndedAt: number | undefined; failing: boolean } {
      const there = others.get(agent);
      const end = there ? later(there, own.get(agent) ?? there) : own.get(agent);
      return { lastEndedAt: end?.endedAt, failing: end?.failing ?? false };
    },
  };
};

export type AgentEnds = ReturnType<typeof createAgentEnds>;
