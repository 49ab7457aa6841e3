import type { CallContext } from "#core/call.ts";
import type { RestHandlers } from "#generated/rest-handlers.ts";
import { limitsOf } from "./present.ts";

export const identity: Pick<RestHandlers<CallContext>, "identity.get"> = {
  "identity.get": async (_, { caller }) => {
    const { name } = caller;
    if (caller.surface === "hooks") throw new TypeError("a webhook has no identity");
    const limits = limitsOf(caller);
    if (caller.surface === "rpc")
      return { kind: "rpc", name, scopes: [], permissions: [...caller.permissions], ...limits };
    const scopes = [...caller.scopes];
    if (scopes.includes("console")) return { kind: "console", name, scopes, permissions: ["*"], ...limits };
    return { kind: "key", name, scopes, permissions: [], ...limits };
  },
};

/** The error for an unknown token. */
export const IDENTITY_TAKES =
  "This path takes a REST key, the console token or an RPC token: `Authorization: Bearer <token>`.";
