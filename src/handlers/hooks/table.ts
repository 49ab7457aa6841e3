import type { HookContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { HooksHandlers } from "#generated/hooks-handlers.ts";
import { agent } from "./agent.ts";
import { mapped } from "./mapped.ts";
import { wake } from "./wake.ts";

/** The body of every webhook. One that is missing does not compile. */
export const hooksHandlers = (core: Core) =>
  ({ ...wake(core), ...agent(core), ...mapped(core) }) satisfies HooksHandlers<HookContext>;
