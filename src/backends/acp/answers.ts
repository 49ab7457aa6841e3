import type {
  PromptResponse,
  RequestPermissionRequest,
  RequestPermissionResponse,
  SessionConfigOption,
} from "@agentclientprotocol/sdk";
import { cleanSentence } from "#kit/clean-words.ts";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import type { Used } from "../backend.ts";
import { countsIn } from "../token-counts.ts";

type Limits = { broken: Promise<BackendError>; signal: AbortSignal | undefined; clock: Clock; ms: number };

/** Waits for an answer. Rejects if the program breaks, the caller leaves, or the time is over before. */
export function within<T>(answer: Promise<T>, { broken, signal, clock, ms }: Limits): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal?.reason);
    if (signal?.aborted) onAbort();
    signal?.addEventListener("abort", onAbort, { once: true });
    const late = () => reject(new BackendError("the agent's program did not answer in time", { retryable: true }));
    const forget = clock.after(ms, late);
    void broken.then(reject);
    answer.then(resolve, reject).finally(() => {
      forget();
      signal?.removeEventListener("abort", onAbort);
    });
  });
}

const LOG_IN_FIRST = -32000;

/** Converts the error that an agent answers, or anything else, to a failure in words for callers. */
export function asRefusal(error: unknown): BackendError {
  const { code, message, data } = Object(error) as { code?: unknown; message?: unknown; data?: unknown };
  if (typeof code !== "number")
    return new BackendError("the gateway cannot communicate with the agent's program", { cause: error });
  const detail = data === undefined ? "" : JSON.stringify(data);
  // The agent's own message, for the log only.
  const cause = new BackendError(cleanSentence(`${code}: ${message} ${detail}`));
  if (code === LOG_IN_FIRST)
    return new BackendError("the agent requires a login first, with its own program", { cause });
  const said = typeof message === "string" ? cleanSentence(message, 200) : "";
  return new BackendError(said === "" ? "the agent failed" : `the agent failed: ${said}`, { cause });
}

const STOPPED: Readonly<Record<string, string>> = {
  max_tokens: "the agent reached its output limit before it replied",
  max_turn_requests: "the agent reached its limit of model requests before it replied",
  refusal: "the agent refuses to answer this",
  cancelled: "the agent cancelled the turn",
};

/** The stop reasons that an agent may give when a permission is denied. */
const LEFT = new Set(["refusal", "cancelled"]);

/** The reason why an answered prompt is not a reply; undefined if it is a reply, even one that a limit of the agent cut short. */
export function reasonOf(
  response: PromptResponse | undefined,
  hasText: boolean,
  wasDenied: boolean,
): BackendError | undefined {
  const stopReason = String(response?.stopReason);
  const isCut = stopReason === "max_tokens" || stopReason === "max_turn_requests";
  if (stopReason === "end_turn" || (isCut && hasText)) return undefined;
  const why = STOPPED[stopReason] ?? "the agent stopped for a reason that is not in its protocol";
  return new BackendError(
    wasDenied && LEFT.has(stopReason)
      ? `${why}: its permission request was refused, because its acp.permissions is deny`
      : why,
  );
}

/** The usage of a prompt, if the agent reports it. It is not in the stable protocol yet, but agents send it. */
export function usageOf(response: PromptResponse | undefined): Used | undefined {
  return countsIn((response as { usage?: unknown } | undefined)?.usage);
}

const WANTED = { allow: ["allow_once", "allow_always"], deny: ["reject_once", "reject_always"] } as const;

/** The answer to an agent's request for permission. Nobody is there to ask, so the configuration decides in advance. */
export function answerPermission(
  request: Partial<RequestPermissionRequest>,
  permissions: "allow" | "deny",
): RequestPermissionResponse {
  const options = Array.isArray(request.options) ? request.options : [];
  const [option] = WANTED[permissions].flatMap((kind) => options.find((option) => option?.kind === kind) ?? []);
  return { outcome: option ? { outcome: "selected", optionId: option.optionId } : { outcome: "cancelled" } };
}

/** Sets the model of a session, by the option that the agent offers for it. A turn that names no model leaves it unchanged. */
export function createModelChoice(
  options: readonly SessionConfigOption[] | null | undefined,
  set: (configId: string, value: string, signal: AbortSignal) => Promise<unknown>,
) {
  const option = Array.isArray(options)
    ? options.find(({ type, category }) => type === "select" && category === "model")
    : undefined;
  let current = option?.type === "select" ? option.currentValue : undefined;
  return async (model: string | undefined, signal: AbortSignal): Promise<void> => {
    if (model === undefined || model === current) return;
    if (option?.type !== "select") throw new BackendError("the agent does not offer a choice of models");
    if (!namesIn(option.options).includes(model)) throw new BackendError(`the agent does not offer the model ${model}`);
    await set(option.id, model, signal);
    current = model;
  };
}

type Select = Extract<SessionConfigOption, { type: "select" }>;

function namesIn(options: Select["options"]): string[] {
  return options.flatMap((one) => ("options" in one ? one.options.map(({ value }) => value) : one.value));
}
