import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { RestHandlers } from "#generated/rest-handlers.ts";

export const agents = ({ beatNow }: Core): Pick<RestHandlers<CallContext>, "agents.beat"> => ({
  "agents.beat": async ({ path }) => {
    const { outcome, waitingEvents } = await beatNow(path.agent_name);
    return { agent_name: path.agent_name, outcome, waiting_events: waitingEvents };
  },
});
