import { bodies } from "#generated/validators/openai.js";
import type { ValidationError } from "#generated/validators/validate.ts";
import { GatewayError } from "#kit/errors.ts";
import { ended } from "#kit/fault-words.ts";
import { type BodyFault, faultOf } from "#wire/call/body-fault.ts";
import type { ValidateRequest } from "#wire/rest/rest-validation.ts";
import { paramOf } from "./openai-error.ts";

/** Holds a body to the contract. Of its address nothing is looked at: clients put there what other servers ask for. */
export const validateOpenAi: ValidateRequest = async (_asked, body, { operation }) => {
  const validate = bodies[operation as keyof typeof bodies];
  if (validate && !validate(body)) throw refusalOf(toldOf(validate.errors ?? []));
  return { body, query: {} };
};

const refusalOf = (fault: BodyFault): GatewayError =>
  new GatewayError("invalid-request", ended(`${paramOf(fault.pointer) || "The body"} ${fault.message}`), {
    errors: [fault],
  });

/** One is told. What a part of another type lacks as text is not what is wrong with it. */
const toldOf = (found: readonly ValidationError[]): BodyFault => {
  const fault = faultOf(found.find(({ keyword }) => keyword !== "required") ?? found[0]);
  const [, field = ""] = fault.pointer.split("/");
  const instead = INSTEAD[field];
  return instead === undefined ? fault : { pointer: `/${field}`, message: `is not taken: ${instead}` };
};

/** What cannot be done, and what is done. */
const INSTEAD: Readonly<Record<string, string>> = {
  tools: "an agent uses the tools of its own configuration",
  functions: "an agent uses the tools of its own configuration",
  n: "one reply is written to a request",
  response_format: "replies are plain text",
  modalities: "replies are plain text",
  audio: "replies are plain text",
  logprobs: "agents do not tell of probabilities",
  top_logprobs: "agents do not tell of probabilities",
  web_search_options: "an agent searches where its own tools do",
};
