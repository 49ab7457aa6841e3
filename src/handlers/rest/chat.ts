import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import { placeOfChat } from "#core/sessions/sessions.ts";
import type { RestHandlers } from "#generated/rest-handlers.ts";
import { startAndAnswer } from "./answer.ts";

export const chat = (core: Core): Pick<RestHandlers<CallContext>, "chat.send"> => ({
  "chat.send": async ({ body }, ctx) => {
    const agent = core.agents.get(body.agent).name;
    const wish = { agent, sessionId: body.session_id, userId: body.user_id };
    const place = placeOfChat(wish, ctx.caller.name, core.clock.now());
    const { message: text, model, stream, skill_ids: skillIds } = body;
    return startAndAnswer(core, { place, text, model, skillIds, stream }, ctx);
  },
});
