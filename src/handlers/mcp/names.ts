const PREFIX = "ask_";
const LONGEST = 64;

/**
 * The name of each agent's tool: `ask_<agent>`, with `_` for each character that a name of a tool cannot have, at most 64 characters long. Names are
 * unique: an agent whose own name fits keeps it, and the others get numbers, in the order of the configuration.
 */
export function askNames(agents: readonly string[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const taken = new Set<string>();
  const add = (agent: string, name: string) => {
    names.set(agent, name);
    taken.add(name);
  };
  for (const agent of agents) if (isExact(agent)) add(agent, PREFIX + agent);
  for (const agent of agents) if (!names.has(agent)) add(agent, freeName(agent, taken));
  return names;
}

function isExact(agent: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(agent) && PREFIX.length + agent.length <= LONGEST;
}

function freeName(agent: string, taken: ReadonlySet<string>): string {
  const whole = PREFIX + agent.replace(/[^A-Za-z0-9_-]/gu, "_");
  for (let n = 1; ; n++) {
    const number = n === 1 ? "" : `_${n}`;
    const name = whole.slice(0, LONGEST - number.length) + number;
    if (!taken.has(name)) return name;
  }
}

/** The name of a skill's tool: its id, or `skill_<id>` if a tool of the gateway has this name. */
export function skillName(skillId: string, reserved: ReadonlySet<string>): string {
  return reserved.has(skillId) ? `skill_${skillId}` : skillId;
}
