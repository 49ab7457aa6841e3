import type { HookContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { HooksHandlers, HooksReplies } from "#generated/hooks-handlers.ts";
import { type HookStarted, startHook } from "./start.ts";

type Reply = HooksReplies["hooks.agent"];

export const agent = (core: Core): Pick<HooksHandlers<HookContext>, "hooks.agent"> => ({
  "hooks.agent": ({ body: { message: text, ...wish } }, ctx) => {
    const started = startHook(core, { text, ...wish }, ctx);
    return started instanceof Promise ? started.then(replyOf) : replyOf(started);
  },
});

const replyOf = ({ body, replayed }: HookStarted): Reply => ({ as: "ok", body, replayed });
