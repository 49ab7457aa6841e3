import type { CallContext } from "#core/call.ts";
import type { Core } from "#core/core.ts";
import type { RestHandlers } from "#generated/rest-handlers.ts";
import { momentOf, snakeCased } from "./present.ts";

export function budgets(core: Core): Pick<RestHandlers<CallContext>, "budgets.list" | "budgets.grant"> {
  return {
    "budgets.list": async (_, { caller }) => ({ budgets: (await core.budgets.list(caller)).map(snakeCased) }),
    "budgets.grant": async ({ path, body: { tokens, cost, until } }, { caller }) =>
      snakeCased(await core.budgets.grant(path.name, { tokens, cost, until: momentOf("/until", until) }, caller)),
  };
}
