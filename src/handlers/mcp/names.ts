const PREFIX = "ask_";
const SKILL_PREFIX = "skill_";
const LONGEST = 64;

/** The names of the tools by agent, and the agents by the name of their tool. */
type AskNames = { toolOf: ReadonlyMap<string, string>; agentOf: ReadonlyMap<string, string> };

const named = new WeakMap<object, AskNames>();

/**
 * The name of each agent's tool: `ask_<agent>`, with `_` for each character that a name of a tool cannot have, at most 64 characters long. Names are
 * unique: an agent whose own name fits keeps it, and the others get numbers, in the order of the configuration. The names of a configuration are
 * computed once.
 */
export function askNames(agents: ReadonlyMap<string, unknown>): AskNames {
  const names = named.get(agents) ?? nameTools([...agents.keys()]);
  named.set(agents, names);
  return names;
}

function nameTools(agents: readonly string[]): AskNames {
  const toolOf = new Map<string, string>();
  const agentOf = new Map<string, string>();
  const add = (agent: string, name: string) => {
    toolOf.set(agent, name);
    agentOf.set(name, agent);
  };
  for (const agent of agents) if (isExact(agent)) add(agent, PREFIX + agent);
  for (const agent of agents) if (!toolOf.has(agent)) add(agent, freeName(agent, agentOf));
  return { toolOf, agentOf };
}

function isExact(agent: string): boolean {
  return /^[A-Za-z0-9_-]+$/.test(agent) && PREFIX.length + agent.length <= LONGEST;
}

function freeName(agent: string, taken: ReadonlyMap<string, string>): string {
  const whole = PREFIX + agent.replace(/[^A-Za-z0-9_-]/gu, "_");
  for (let n = 1; ; n++) {
    const number = n === 1 ? "" : `_${n}`;
    const name = whole.slice(0, LONGEST - number.length) + number;
    if (!taken.has(name)) return name;
  }
}

/** The name of a skill's tool: its id, or `skill_<id>` if a tool of the gateway has this name. */
export function skillName(skillId: string, reserved: ReadonlySet<string>): string {
  return reserved.has(skillId) ? SKILL_PREFIX + skillId : skillId;
}

/** The id of the skill whose tool has this name. Ids have no `_`. */
export function skillIdOf(name: string, reserved: ReadonlySet<string>): string | undefined {
  const skillId = name.startsWith(SKILL_PREFIX) ? name.slice(SKILL_PREFIX.length) : name;
  return skillName(skillId, reserved) === name ? skillId : undefined;
}
