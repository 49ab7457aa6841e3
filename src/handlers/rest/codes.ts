import type { CallContext } from "#core/call.ts";
import type { SignIn } from "#core/codes.ts";
import type { Core } from "#core/core.ts";
import type { RestHandlers } from "#generated/rest-handlers.ts";
import { GatewayError } from "#kit/errors.ts";
import { timeOf } from "./present.ts";

export type SignInParts = {
  /** True if the token that created a code still has the same rights. */
  maySignIn: (signIn: SignIn) => boolean;
};

type Bodies = Pick<RestHandlers<CallContext>, "codes.create" | "codes.redeem">;

export function codes(core: Core, { maySignIn }: SignInParts): Bodies {
  return {
    "codes.create": async (_, { caller, bearer = "" }) => {
      const isConsole = caller.surface === "rest" && caller.scopes.includes("console");
      const { name } = caller;
      const { code, expiresAt } = core.codes.create({ name, kind: isConsole ? "console" : "admin", token: bearer });
      return { code, expires_at: timeOf(expiresAt) };
    },
    "codes.redeem": async (_, { bearer = "" }) => {
      const signIn = core.codes.redeem(bearer);
      // Another call has used the code since this one was authenticated.
      if (!signIn) throw new GatewayError("unauthenticated", CODE_TAKES);
      if (!maySignIn(signIn))
        throw new GatewayError("unauthenticated", "The key or token that made this code is no longer valid.");
      return signIn;
    },
  };
}

/** The error for an unknown code. */
export const CODE_TAKES =
  "This path takes a sign-in code: `Authorization: Bearer <code>`. A code works once, for one minute, on the gateway that made it, until it restarts.";
