import type { CallContext, Caller } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { agentFor, agentsFor } from "#core/reach.ts";
import { checkParams, hasSkill, type Skill, triggerText } from "#core/skills/skills.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import { placeFor, startAndAnswer } from "./chat.ts";

type Bodies = Pick<RestHandlers<CallContext>, "skills.list" | "skills.get" | "skills.trigger">;

export function skills(core: Core): Bodies {
  return {
    "skills.list": async (_, { caller }) => {
      const skills = core.skills.list().map((skill) => present(core, caller, skill));
      if (caller.agents === undefined) return { skills, invalid: [...core.skills.leftOut()] };
      return { skills: skills.filter(({ agents }) => agents.length > 0), invalid: [] };
    },
    "skills.get": async ({ path }, { caller }) => {
      const skill = core.skills.get(path.skill_id);
      return { ...present(core, caller, skill), instructions: skill.body };
    },
    "skills.trigger": async ({ body }, ctx) => {
      const place = await placeFor(core, body, ctx);
      const { model, stream, wait, skill_id, params } = body;
      const text = triggerText(skill_id, params);
      const skill = core.skills.find(skill_id);
      // A skill that the agent does not have is refused as unknown, before its params are checked.
      const isKnown = hasSkill(agentFor(core.agents, ctx.caller, place.agent), skill_id);
      if (skill && isKnown) checkParams(skill, params);
      return startAndAnswer(core, { place, text, model, skillIds: [skill_id], stream, wait }, ctx);
    },
  };
}

function present({ agents }: Core, caller: Caller, skill: Skill): RestReplies["skills.list"]["skills"][number] {
  return {
    skill_id: skill.skillId,
    name: skill.skillId,
    description: skill.description,
    agents: agentsFor(agents, caller).flatMap((agent) => (hasSkill(agent, skill.skillId) ? [agent.name] : [])),
    ...(skill.license !== undefined && { license: skill.license }),
    ...(skill.compatibility !== undefined && { compatibility: skill.compatibility }),
    ...(skill.allowedTools.length > 0 && { allowed_tools: [...skill.allowedTools] }),
    ...(Object.keys(skill.metadata).length > 0 && { metadata: { ...skill.metadata } }),
    ...(skill.params && { params_schema: { ...skill.params.schema } }),
  };
}
