import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { checkParams, hasSkill, type Skill } from "#core/skills/skills.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import { placeFor, startAndAnswer } from "./chat.ts";

type Bodies = Pick<RestHandlers<CallContext>, "skills.list" | "skills.get" | "skills.trigger">;

export function skills(core: Core): Bodies {
  return {
    "skills.list": async () => ({
      skills: core.skills.list().map((skill) => present(core, skill)),
      invalid: [...core.skills.leftOut()],
    }),
    "skills.get": async ({ path }) => {
      const skill = core.skills.get(path.skill_id);
      return { ...present(core, skill), instructions: skill.body };
    },
    "skills.trigger": async ({ body }, ctx) => {
      const place = placeFor(core, body, ctx);
      const text = `/${body.skill_id} ${JSON.stringify(body.params)}`;
      const { model, stream, wait, skill_id } = body;
      const skill = core.skills.find(skill_id);
      if (skill) checkParams(skill, body.params);
      return startAndAnswer(core, { place, text, model, skillIds: [skill_id], stream, wait }, ctx);
    },
  };
}

function present(core: Core, skill: Skill): RestReplies["skills.list"]["skills"][number] {
  return {
    skill_id: skill.skillId,
    name: skill.skillId,
    description: skill.description,
    agents: core.agents.list().flatMap((agent) => (hasSkill(agent, skill.skillId) ? [agent.name] : [])),
    ...(skill.license !== undefined && { license: skill.license }),
    ...(skill.compatibility !== undefined && { compatibility: skill.compatibility }),
    ...(skill.allowedTools.length > 0 && { allowed_tools: [...skill.allowedTools] }),
    ...(Object.keys(skill.metadata).length > 0 && { metadata: { ...skill.metadata } }),
    ...(skill.params && { params_schema: { ...skill.params.schema } }),
  };
}
