import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { createRequire } from "node:module";
import type Express from "express";
import type { OpenAPIV3 } from "express-openapi-validator/dist/framework/types.js";
import { bodies } from "#generated/validators/rest-bodies.js";
import { GatewayError } from "#kit/errors.ts";
import { yieldToOthers } from "#kit/yield.ts";
import { invalidRequest } from "#wire/call/body-fault.ts";
import { isIdempotencyKey } from "#wire/call/idempotency-key.ts";
import type { Route } from "#wire/call/routes.ts";
import {
  bodySchemaIn,
  cutDown,
  type FieldsOf,
  faultsOf,
  fieldsIn,
  namedIn,
  type ValidationFault,
} from "./contract-faults.ts";
import { loadOpenApiValidator } from "./openapi-validator.ts";

export type ValidatedRequest = { body: unknown; query: Record<string, unknown> };

/** The parts of a request that the contract describes, without its body. */
export type RequestHead = { method?: string | undefined; url?: string | undefined; headers: IncomingHttpHeaders };

/** Holds a request to the contract: fills in defaults, or throws `invalid-request` with each fault. */
export type ValidateRequest = (asked: RequestHead, body: unknown, route: Route) => Promise<ValidatedRequest>;

/**
 * Checks the bodies of frequent operations with validators that were compiled ahead, as the way through Express costs a short
 * turn more than all the rest. They only accept: `validate` decides on a request that they do not take or do not check.
 */
export function validateHot(validate: ValidateRequest): ValidateRequest {
  return (asked, body, route) => {
    const isTaken = bodies[route.operation as keyof typeof bodies];
    return isTaken && isPlain(asked) && isTaken(body)
      ? Promise.resolve({ body, query: {} })
      : validate(asked, body, route);
  };
}

/** True if the request has no query, and no idempotency key or a valid one. */
function isPlain({ url = "", headers }: RequestHead): boolean {
  if (url.includes("?")) return false;
  const key = headers["idempotency-key"];
  return key === undefined || (typeof key === "string" && isIdempotencyKey(key));
}

const SETTLE = Symbol("settle");
type Settled = IncomingMessage & {
  body?: unknown;
  query?: Record<string, unknown>;
  [SETTLE]?: ((error?: unknown) => void) | undefined;
};

/**
 * Loads Express and express-openapi-validator with the contract, which takes some 200 milliseconds: the other doors open first, and other
 * callers are served between its parts. The schema of an operation is compiled at its first request, in 3 to 20 milliseconds.
 */
export async function createRequestValidation(document: object): Promise<ValidateRequest> {
  // As the CommonJS that they are: imported at once, Node 20 has at times handed out one that had not been run yet, empty.
  const require = createRequire(import.meta.url);
  await yieldToOthers();
  const express = require("express") as typeof Express;
  await yieldToOthers();
  const OpenApiValidator = loadOpenApiValidator();
  const app = express();
  app.disable("x-powered-by");
  app.set("etag", false);
  app.use(
    OpenApiValidator.middleware({
      apiSpec: document as OpenAPIV3.DocumentV3_1,
      validateApiSpec: false, // linted when it was generated
      validateRequests: { removeAdditional: false, allErrors: true },
      validateResponses: false, // the tests hold every reply to the contract, at the client's side
      validateSecurity: false, // done before a byte of the body was read
      validateFormats: false,
      fileUploader: false,
    }),
  );
  app.use((req: Settled) => req[SETTLE]?.());
  app.use((error: unknown, req: Settled, _res: unknown, _next: unknown) => req[SETTLE]?.(error ?? "no error given"));

  const named = namedIn(document);
  const validate: ValidateRequest = ({ method, url, headers }, body, route) =>
    new Promise((resolve, reject) => {
      const settle = (error?: unknown): void => {
        req[SETTLE] = undefined;
        if (error === undefined) resolve({ body: req.body, query: req.query ?? {} });
        else reject(translated(error, () => fieldsIn(document, route)));
      };
      // Its validators are stored under the header's whole text: each spelling of the parameters would be compiled again.
      const { "content-type": _, ...others } = headers;
      const type = body === undefined ? {} : { "content-type": "application/json" };
      // Created for Express, with its prototypes, and discarded with everything that it adds to them. The real ones may be of HTTP/2.
      const req: Settled = Object.assign(Object.create(app.request), {
        method,
        url,
        headers: { ...others, ...type },
        body: cutDown(body, bodySchemaIn(document, route), named),
        [SETTLE]: settle,
      });
      (app as unknown as (req: IncomingMessage, res: ServerResponse) => void)(req, Object.create(app.response));
    });

  return validate;
}

/** Never throws: the request would get no answer. */
function translated(error: unknown, fieldsOf: () => FieldsOf): unknown {
  try {
    return translate(error, fieldsOf);
  } catch (fault) {
    return fault;
  }
}

/** An error of express-openapi-validator, in our words. */
function translate(error: unknown, fieldsOf: () => FieldsOf): unknown {
  const { status, errors, message } = error as { status?: number; errors?: ValidationFault[]; message?: string };
  if (status === 400 && errors) return invalidRequest(faultsOf(errors, fieldsOf()));
  if (status === 415) return new GatewayError("unsupported-media-type");
  if (status === 404) return new GatewayError("not-found", message);
  return error;
}
