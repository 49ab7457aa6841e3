import type { HookContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { Choice } from "#core/mappings.ts";
import type { HooksHandlers, HooksReplies } from "#generated/hooks-handlers.ts";
import { GatewayError } from "#kit/errors.ts";
import { startHook } from "./start.ts";

export const mapped = (core: Core): Pick<HooksHandlers<HookContext>, "hooks.mapped" | "hooks.mappedByName"> => ({
  "hooks.mapped": async ({ body }, ctx) => {
    const { chosen } = choose(core, body, ctx);
    if (chosen) return startMapped(core, chosen, ctx);
    ctx.answer = "unmatched";
    throw new GatewayError("mapping-not-found", "No mapping matched the payload.");
  },
  "hooks.mappedByName": async ({ path, body }, ctx) => {
    const { chosen } = choose(core, body, ctx, path.name);
    if (chosen) return startMapped(core, chosen, ctx);
    ctx.answer = "unmatched";
    const { deliveryId } = ctx.delivery();
    return { as: "ok", body: { status: 200, message: "no mapping matched", deliveryId }, replayed: false };
  },
});

/** The mapping that takes the request, and on the request's timeline why the others did not. */
const choose = ({ mappings }: Core, body: unknown, ctx: HookContext, name?: string): Choice => {
  const choice = mappings.choose({ headers: ctx.headers, body }, name);
  ctx.note("mapping.tried", mappings.noteOf(choice));
  return choice;
};

const startMapped = async (
  core: Core,
  { mapping, message }: NonNullable<Choice["chosen"]>,
  ctx: HookContext,
): Promise<HooksReplies["hooks.mapped"]> => {
  const { name, agent, session, model, channel, delivery } = mapping;
  ctx.mapping = name;
  ctx.note("message.rendered", JSON.stringify({ mapping: name, characters: message.length }));
  const started = await startHook(core, { agent, session, model, channel, delivery, text: message }, ctx);
  return { as: "ok", body: { ...started.body, mapping: name }, replayed: started.replayed };
};
