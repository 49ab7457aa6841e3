import type { ServerResponse } from "node:http";
import { errors } from "#generated/errors.ts";
import type { OpenAiError } from "#generated/rest-types.ts";
import { bodies } from "#generated/validators/openai.js";
import type { ValidationError } from "#generated/validators/validate.ts";
import { type ErrorName, GatewayError } from "#kit/errors.ts";
import { type BodyFault, faultOf, invalidRequest } from "#wire/call/body-fault.ts";
import { retryOf, type Wording } from "#wire/call/problem.ts";
import type { Framing } from "#wire/call/sse.ts";
import type { ValidateRequest } from "#wire/rest/rest-validation.ts";

/** Error codes that clients of OpenAI know. Any other error has our name as its code. */
const CODES: Partial<Record<ErrorName, string>> = {
  "agent-not-found": "model_not_found",
  unauthenticated: "invalid_api_key",
  "rate-limited": "rate_limit_exceeded",
  "budget-exceeded": "insufficient_quota",
};

/** An error in OpenAI's format. An internal one has no cause. */
function openAiErrorOf({ name, detail, extra }: GatewayError): OpenAiError {
  const { status, title } = errors[name];
  const pointer = extra.errors?.[0]?.pointer;
  return {
    error: {
      message: detail === undefined || name === "internal" ? `${title}.` : `${title}: ${detail}`,
      type: name === "budget-exceeded" ? "insufficient_quota" : typeOf(status),
      param: pointer ? paramOf(pointer) : null,
      code: CODES[name] ?? name.replaceAll("-", "_"),
      ...(extra.turnId !== undefined && { turn_id: extra.turnId }),
    },
  };
}

function typeOf(status: number): OpenAiError["error"]["type"] {
  if (status >= 500) return "server_error";
  if (status === 401) return "authentication_error";
  if (status === 403) return "permission_error";
  return status === 429 ? "rate_limit_error" : "invalid_request_error";
}

/** `/messages/0/content` as OpenAI writes it: `messages[0].content`. A place outside the body is its name. */
function paramOf(pointer: string): string {
  return pointer
    .replace(/^(\/|\w+:)/, "")
    .replaceAll(/\/(\d+)(?=\/|$)/g, "[$1]")
    .replaceAll("/", ".");
}

/** Clients of OpenAI follow a `Retry-After` up to a minute. After a longer one they would retry in seconds. */
const LONGEST_RETRY_MS = 60_000;

export const asOpenAiError: Wording = (error) => ({
  type: "application/json",
  // Else they would send a turn that failed a second and a third time.
  headers: { "x-should-retry": String(errors[error.name].retry && (retryOf(error) ?? Infinity) <= LONGEST_RETRY_MS) },
  body: JSON.stringify(openAiErrorOf(error)),
});

/** Tells of it in a stream that is under way. */
export function endWithOpenAiError(res: ServerResponse, error: GatewayError): unknown {
  return res.end(frameOf(openAiErrorOf(error)));
}

function frameOf(event: unknown): string {
  return `data: ${JSON.stringify(event)}\n\n`;
}

const STOPPED = new GatewayError("shutting-down", "The stream ends because the gateway stops; the turn is stored.");

/** OpenAI's stream format. For its clients a stream without a last event is complete. */
export const OPENAI_FRAMING: Framing = {
  frame: frameOf,
  end: "data: [DONE]\n\n",
  stopped: frameOf(openAiErrorOf(STOPPED)),
};

/** Holds a body to the contract. The query is not checked: clients put parameters there that other servers ask for. */
export const validateOpenAi: ValidateRequest = async (_asked, body, { operation }) => {
  const validate = bodies[operation as keyof typeof bodies];
  if (validate && !validate(body)) throw invalidRequest([foremostFault(validate.errors ?? [])], paramOf);
  return { body, query: {} };
};

/** The one reported fault. A missing text comes last: a part of another type has none, and its type is the real fault. */
function foremostFault(found: readonly ValidationError[]): BodyFault {
  const fault = faultOf(found.find(({ keyword }) => keyword !== "required") ?? found[0]);
  const [, field = ""] = fault.pointer.split("/");
  const instead = INSTEAD[field];
  return instead === undefined ? fault : { pointer: `/${field}`, message: `is not supported: ${instead}` };
}

/** The fields that are not supported, with the behaviour that there is instead. */
const INSTEAD: Readonly<Record<string, string>> = {
  tools: "an agent uses the tools of its own configuration",
  functions: "an agent uses the tools of its own configuration",
  n: "one reply is written to a request",
  response_format: "replies are plain text",
  modalities: "replies are plain text",
  audio: "replies are plain text",
  logprobs: "agents do not report probabilities",
  top_logprobs: "agents do not report probabilities",
  web_search_options: "an agent searches where its own tools do",
};
