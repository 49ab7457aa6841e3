import { about, plural } from "./format.ts";
import type { Step } from "./steps.ts";

/** Why a request failed: the cause, the status and name of the error, more about it, and the next step. */
export type Failure = { cause: string; error: string; detail: string; advice: string; isExpected?: true };

/** Why a request was refused, its turn or event failed, or a planned run did not start; undefined for any other request. */
export function failureOf(steps: readonly Step[], agent: string | null): Failure | undefined {
  const refusal = steps.find(({ name }) => name === "request.refused");
  if (refusal) return refusalOf(refusal, steps);
  const skip = steps.find(({ name }) => name === "schedule.skipped");
  if (skip) return skipOf(skip);
  const end = steps.findLast(({ name }) =>
    ["turn.failed", "turn.completed", "event.dead", "event.handled"].includes(name),
  );
  const { error = "", detail = "", reason = "", attempts = 0 } = (end?.detail ?? {}) as Record<string, string>;
  if (end?.name === "event.dead")
    return {
      error: "",
      cause: `The event failed after ${plural(Number(attempts), "attempt")}`,
      detail: withoutStop(reason),
      advice: "",
    };
  if (end?.name !== "turn.failed") return undefined;
  const tried = steps.filter(({ name }) => name === "turn.started").length;
  return {
    error,
    cause: detail === "" ? `${agent ?? "The agent"} failed` : causeOf(detail, agent ?? "the agent"),
    detail: tried > 1 ? `All ${tried} attempts failed.` : "",
    advice: "",
  };
}

/** `the agent's service answered 503` as `flaky answered 503`. */
export function causeOf(reason: string, agent: string): string {
  const words = withoutStop(reason);
  const named = words.replace(/^the (?:agent's (?:service|program)|remote agent|agent)(?= )/i, agent);
  return named === words ? `${agent}: ${words}` : named;
}

/** A skipped run is not a failure: the next one starts as planned. */
function skipOf(skip: Step): Failure {
  const { reason = "", detail = "" } = (skip.detail ?? {}) as Record<string, string>;
  return { cause: "The planned run was skipped", error: reason, detail, advice: "", isExpected: true };
}

function withoutStop(words: string): string {
  return words.replace(/\.+$/, "");
}

function refusalOf(refusal: Step, steps: readonly Step[]): Failure {
  const { error = "error", status = "", detail = "" } = (refusal.detail ?? {}) as Record<string, string>;
  const check = steps.find(({ name }) => name === "signature.refused" || name === "token.refused");
  const said = check && CHECKS[`${check.name} ${check.detail?.reason}`];
  const code = `${status} ${error}`.trim();
  if (said)
    return {
      cause: `Refused: ${said.cause}`,
      error: code,
      detail: said.detail(check.detail ?? {}),
      advice: said.advice,
    };
  return { cause: "Refused", error: code, detail: detail ?? "", advice: ADVICE[error] ?? "" };
}

type Check = { cause: string; detail: (d: Record<string, unknown>) => string; advice: string };

/** The words for a token or a signature that was refused, by the reason that was recorded. */
const CHECKS: Readonly<Record<string, Check>> = {
  "token.refused missing": {
    cause: "no token",
    detail: () => "The request has no webhook token.",
    advice:
      "The sender must send `Authorization: Bearer <token>` or `x-gateway-token`, or a signature if the mapping has `verify`.",
  },
  "token.refused wrong": {
    cause: "unknown token",
    detail: () => "The token of the request is not configured.",
    advice: "Compare the sender's token with `webhooks.token`.",
  },
  "signature.refused missing": {
    cause: "no signature",
    detail: ({ type }) => `The request has no complete \`${type}\` signature.`,
    advice: "Set the secret at the sender. A proxy must forward the signature headers.",
  },
  "signature.refused wrong": {
    cause: "wrong signature",
    detail: ({ type }) => `The signature (\`${type}\`) does not match the body.`,
    advice:
      "Compare the secret of the mapping's `verify` with the sender's. A proxy that changes the body breaks the signature.",
  },
  "signature.refused too-old": {
    cause: "signature too old",
    detail: (d) => `The request was signed ${timesOf(d, "ago")}.`,
    advice: "The sender's clock is wrong, or a recorded request was sent again. Replay stored requests from here.",
  },
  "signature.refused too-new": {
    cause: "signature from the future",
    detail: (d) => `The request was signed ${timesOf(d, "ahead")}.`,
    advice: "Compare the sender's clock with the gateway's.",
  },
};

/** How far the signature's time is from the gateway's; older gateways recorded no numbers. */
function timesOf({ age_ms, allowed_ms }: Record<string, unknown>, word: string): string {
  if (typeof age_ms !== "number") return word === "ago" ? "too long ago" : "with a time in the future";
  return `${about(Math.abs(age_ms))} ${word}; ${about(Number(allowed_ms))} allowed`;
}

/** The next step, for the refusals that senders meet most. */
const ADVICE: Readonly<Record<string, string>> = {
  "rate-limited": "`webhooks.rateLimit` is the limit. Senders that honour `Retry-After` send again automatically.",
  "mapping-not-found": "The configuration has no mapping of this name. The Webhooks page lists all mappings.",
  "address-not-allowed":
    "`webhooks.allowedIps` does not include the sender's address. Behind a proxy, add the proxy to `gateway.trustedProxies`.",
};
