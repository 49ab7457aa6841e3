import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { ReplayParts } from "#core/recorder/replay.ts";
import type { RestHandlers } from "#generated/rest-handlers.ts";
import { agents } from "./agents.ts";
import { budgets } from "./budgets.ts";
import { chat } from "./chat.ts";
import { codes, type SignInParts } from "./codes.ts";
import { type ConfigParts, config } from "./config.ts";
import { deliveries } from "./deliveries.ts";
import { events } from "./events.ts";
import { identity } from "./identity.ts";
import { keys } from "./keys.ts";
import { type MappingParts, mappings } from "./mappings.ts";
import { notifications } from "./notifications.ts";
import { schedules } from "./schedules.ts";
import { skills } from "./skills.ts";
import { turns } from "./turns.ts";

/** The body of every REST operation. One that is missing does not compile. */
export function restHandlers(core: Core, parts: ReplayParts & ConfigParts & MappingParts & SignInParts) {
  return {
    ...chat(core),
    ...skills(core),
    ...turns(core),
    ...agents(core),
    ...budgets(core),
    ...schedules(core),
    ...deliveries(core, parts),
    ...events(core),
    ...notifications(core),
    ...mappings(core, parts),
    ...config(parts),
    ...keys(core),
    ...codes(core, parts),
    ...identity,
  } satisfies RestHandlers<CallContext>;
}
