import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { RestHandlers } from "#generated/rest-handlers.ts";
import { chat } from "./chat.ts";
import { keys } from "./keys.ts";
import { skills } from "./skills.ts";
import { turns } from "./turns.ts";

/** The body of every REST operation. One that is missing does not compile. */
export const restHandlers = (core: Core) =>
  ({ ...chat(core), ...skills(core), ...turns(core), ...keys(core) }) satisfies RestHandlers<CallContext>;
