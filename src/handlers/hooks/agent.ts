import type { HookContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { HooksHandlers } from "#generated/hooks-handlers.ts";
import { startHook } from "./start.ts";

export const agent = (core: Core): Pick<HooksHandlers<HookContext>, "hooks.agent"> => ({
  "hooks.agent": async ({ body: { message: text, ...wish } }, ctx) => ({
    as: "ok",
    ...(await startHook(core, { text, ...wish }, ctx)),
  }),
});
