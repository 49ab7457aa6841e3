import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { placeOfChat } from "#core/sessions.ts";
import { checkParams, hasSkill, type Skill } from "#core/skills.ts";
import type { RestHandlers, RestReplies } from "#generated/rest-handlers.ts";
import { startAndAnswer } from "./answer.ts";

export const skills = (core: Core): Pick<RestHandlers<CallContext>, "skills.list" | "skills.trigger"> => ({
  "skills.list": async () => ({
    skills: core.skills.list().map((skill) => {
      const agents = core.agents.list().filter((agent) => hasSkill(agent, skill.skillId));
      return present(
        skill,
        agents.map(({ name }) => name),
      );
    }),
  }),
  "skills.trigger": async ({ body }, ctx) => {
    const agent = core.agents.get(body.agent).name;
    const wish = { agent, sessionId: body.session_id, userId: body.user_id };
    const place = placeOfChat(wish, ctx.caller.name, core.clock.now());
    const text = `/${body.skill_id} ${JSON.stringify(body.params)}`;
    const { model, stream, skill_id } = body;
    const skill = core.skills.find(skill_id);
    if (skill) checkParams(skill, body.params);
    return startAndAnswer(core, { place, text, model, skillIds: [skill_id], stream }, ctx);
  },
});

const present = (skill: Skill, agents: string[]): RestReplies["skills.list"]["skills"][number] => ({
  skill_id: skill.skillId,
  name: skill.skillId,
  description: skill.description,
  agents,
  ...(skill.license !== undefined && { license: skill.license }),
  ...(skill.compatibility !== undefined && { compatibility: skill.compatibility }),
  ...(skill.allowedTools.length > 0 && { allowed_tools: [...skill.allowedTools] }),
  ...(Object.keys(skill.metadata).length > 0 && { metadata: { ...skill.metadata } }),
  ...(skill.params && { params_schema: { ...skill.params.schema } }),
});
