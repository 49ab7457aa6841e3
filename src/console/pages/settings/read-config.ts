import { rest } from "#console/app/api.ts";
import type { ConfigReply } from "#console/lib/config-view.ts";

/** The configuration in force. */
export function readConfig(signal: AbortSignal): Promise<ConfigReply> {
  return rest().config.get({ signal });
}
