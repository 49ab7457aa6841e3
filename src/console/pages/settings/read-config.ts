import { rest } from "#console/app/api.ts";
import type { ConfigReply } from "#console/lib/config-view.ts";

/** The configuration in force. */
export const readConfig = (signal: AbortSignal): Promise<ConfigReply> => rest().config.get({ signal });
