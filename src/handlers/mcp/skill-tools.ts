import type { Agent } from "#core/agents/agents.ts";
import type { Core } from "#core/core.ts";
import type { McpSettings, McpSkill, McpSkills, RestCaller } from "#core/mcp-tools.ts";
import { listSkillFiles, readSkillFile, sizeOfSkillFile } from "#core/skills/skill-files.ts";
import { hasSkill, type Skill, triggerText } from "#core/skills/skills.ts";
import { ended } from "#kit/fault-words.ts";
import { TURN_OUTPUT } from "./answers.ts";
import { listedSchema } from "./listed-schema.ts";
import { skillIdOf, skillName } from "./names.ts";
import { isOperator } from "./operator-tools.ts";
import { type Args, checkedBy, invalidArguments, type TurnTool } from "./tool.ts";
import { LATER, offeredTo, SESSION, startFor, UNTRUSTED } from "./turn-tools.ts";

type Schema = Readonly<Record<string, unknown>>;
type Triggered = { params: Args; session: string | undefined; agent: string | undefined };
type Parts = { core: Core; settings: McpSettings; reserved: ReadonlySet<string>; hideInJson: (json: string) => string };

/** A tool for each skill that the caller may trigger, in the order of their ids. */
export function skillTools(parts: Parts, caller: RestCaller): TurnTool[] {
  const { core, settings } = parts;
  return triggerable(core, settings, caller, allSkills(core)).map((one) => triggerTool(parts, one));
}

/** The tool with this name in that list. */
export function findSkillTool(parts: Parts, caller: RestCaller, name: string): TurnTool | undefined {
  const { core, settings, reserved } = parts;
  const skill = core.skills.find(skillIdOf(name, reserved) ?? "");
  const [found] = skill ? triggerable(core, settings, caller, [skill]) : [];
  return found && triggerTool(parts, found);
}

function allSkills({ skills }: Core): Skill[] {
  return skills.ids().map((id) => skills.get(id));
}

type Triggerable = { skill: Skill; agents: string[] };

/** Those of the skills that the caller may trigger, each with the agents that have it. */
function triggerable(core: Core, settings: McpSettings, caller: RestCaller, skills: readonly Skill[]): Triggerable[] {
  if (!settings.skills) return [];
  const offered: readonly Agent[] = offeredTo(core, settings, caller);
  return skills.flatMap((skill) => {
    const agents = offered.filter((agent) => hasSkill(agent, skill.skillId)).map(({ name }) => name);
    return agents.length > 0 ? [{ skill, agents }] : [];
  });
}

function triggerTool({ core, reserved, hideInJson }: Parts, { skill, agents }: Triggerable): TurnTool {
  const { skillId, description } = skill;
  const extras = extrasOf(skill, agents);
  const read = skill.params ? readDeclared(skill, extras) : readAny(extras);
  return {
    name: skillName(skillId, reserved),
    title: `Run the skill ${skillId}`,
    description: `${core.hide(ended(description.trim()))} ${UNTRUSTED} ${LATER}`,
    inputSchema: inputOf(skill, extras, hideInJson),
    outputSchema: TURN_OUTPUT,
    hint: "write",
    isTrusted: false,
    startsTurn: true,
    async start(args, call) {
      const { params, session, agent = usualAgent(core, agents) } = await read(args);
      requireAmong(agents, agent);
      return startFor(core, { agent, session, text: triggerText(skillId, params), skillIds: [skillId] }, call);
    },
  };
}

/** The default agent if it has the skill, as in REST; otherwise the first that has it. */
function usualAgent({ agents: { defaultName } }: Core, agents: readonly string[]): string {
  const name = defaultName();
  return name !== undefined && agents.includes(name) ? name : (agents[0] as string);
}

function requireAmong(agents: readonly string[], agent: string): void {
  if (agents.includes(agent)) return;
  throw invalidArguments([{ pointer: "/agent", message: `must be one of ${agents.join(", ")}` }]);
}

type Extras = { session?: object; agent?: object };
/** The inputs of a skill besides its params. */
function extrasOf(skill: Skill, agents: readonly string[]): Extras {
  const extras: Extras = {};
  if (mayAdd(skill, "session")) extras.session = SESSION;
  const usual = "The agent that runs the skill.";
  if (agents.length > 1 && mayAdd(skill, "agent"))
    extras.agent = { type: "string", enum: [...agents], description: usual };
  return extras;
}

/** A schema with only these keywords can get another property without changing how its own are validated. */
const SIMPLE = new Set(
  "$schema $id $comment $defs definitions title description type properties required additionalProperties examples default".split(
    " ",
  ),
);

/** True if no params of the skill can have this name. */
function mayAdd({ params }: Skill, name: string): boolean {
  if (!params) return true;
  const { schema } = params;
  const isSimple = Object.keys(schema).every((keyword) => SIMPLE.has(keyword));
  return isSimple && schema.additionalProperties === false && !Object.hasOwn(Object(schema.properties), name);
}

/** The inputs of a skill that takes any params. */
const ANY = {
  type: "object",
  additionalProperties: false,
  properties: {
    params: { type: "object", default: {}, description: "The params of the skill: any JSON object." },
    session: SESSION,
  },
};
const AGENT = { type: "string" };
const ANY_AND_AGENT = { ...ANY, properties: { ...ANY.properties, agent: AGENT } };
/** The schema of `session` and `agent`, which are added to declared params. */
const EXTRAS = { type: "object", properties: { session: SESSION, agent: AGENT } };

/** The schemas of params as they are listed, without the secrets of the configuration. A reload reads each skill again. */
const hiddenSchemas = new WeakMap<Skill, Schema>();

function inputOf(skill: Skill, extras: Extras, hideInJson: Parts["hideInJson"]): Schema {
  const hidden = (schema: Schema) => JSON.parse(hideInJson(JSON.stringify(listedSchema(schema)))) as Schema;
  const schema = hiddenSchemas.get(skill) ?? (skill.params ? hidden(skill.params.schema) : ANY);
  hiddenSchemas.set(skill, schema);
  return { ...schema, properties: { ...Object(schema.properties), ...extras } };
}

/** Checks the arguments against the inputs that the tool lists. Which agents there are is checked after it. */
function readAny({ agent }: Extras) {
  return (args: Args) => checkedBy<Triggered>(agent ? ANY_AND_AGENT : ANY, args);
}

/** Separates the params of the skill from the added `session` and `agent`. */
function readDeclared({ params }: Skill, extras: Extras) {
  return async (args: Args): Promise<Triggered> => {
    const isExtra = ([name]: [string, unknown]) => Object.hasOwn(extras, name);
    const given = Object.entries(args);
    const own = Object.fromEntries(given.filter((one) => !isExtra(one)));
    const faults = params?.check(own) ?? [];
    if (faults.length > 0) throw invalidArguments(faults);
    const { session, agent } = await checkedBy<Triggered>(EXTRAS, Object.fromEntries(given.filter(isExtra)));
    return { params: own, session, agent };
  };
}

/** The files of a skill that clients may read: not those whose name, or whose folder's name, begins with a dot. */
async function servedFiles(dir: string): Promise<string[]> {
  return (await listSkillFiles(dir)).filter((path) => !/(^|\/)\./.test(path));
}

/** The folders of the skills that a caller may trigger, for callers that may read skills in REST. */
export function skillFolders(core: Core, settings: () => McpSettings): McpSkills {
  const foldersOf = (caller: RestCaller, skills: readonly Skill[]) =>
    isOperator(caller) ? triggerable(core, settings(), caller, skills).map(({ skill }) => folderOf(skill)) : [];
  return {
    list: (caller) => foldersOf(caller, allSkills(core)),
    find(id, caller) {
      const skill = core.skills.find(id);
      return skill && foldersOf(caller, [skill])[0];
    },
  };
}

function folderOf({ skillId, dir }: Skill): McpSkill {
  return {
    id: skillId,
    async files() {
      const found = await Promise.all((await servedFiles(dir)).map((path) => sizeOfSkillFile(dir, path)));
      return found.flatMap((file) => (file ? [{ ...file, read: () => bytesOf(dir, file.path) }] : []));
    },
  };
}

async function bytesOf(dir: string, path: string): Promise<Uint8Array | undefined> {
  const read = await readSkillFile(dir, path);
  return "bytes" in read ? read.bytes : undefined;
}
