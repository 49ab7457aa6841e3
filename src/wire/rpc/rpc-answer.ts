import { errors } from "#generated/errors.ts";
import type { GatewayError } from "#kit/errors.ts";
import { retryOf } from "#wire/call/problem.ts";

const RESULT = '{"jsonrpc":"2.0","result":';
const ID = ',"id":';

/** The success response; `id` is JSON already. A method without a result has null for one, as the protocol wants a value. */
export const resultText = (result: unknown, id: string): string =>
  `${RESULT}${JSON.stringify(result) ?? "null"}${ID}${id}}`;

/** The error object. An internal one says nothing of its cause. */
export const errorOf = (error: GatewayError, requestId: string) => {
  const { name, detail, extra } = error;
  const { code, title } = errors[name];
  const retryAfterMs = retryOf(error);
  return {
    // What has no code of its own there cannot happen there, so it would be a fault of ours.
    code: code ?? errors.internal.code,
    message: title,
    data: {
      name,
      ...(detail !== undefined && name !== "internal" && { detail }),
      requestId,
      ...(retryAfterMs !== undefined && { retryAfterMs }),
      ...(extra.turnId !== undefined && { turnId: extra.turnId }),
    },
  };
};

/** The error response; `id` is JSON already. */
export const failureText = (error: GatewayError, requestId: string, id: string): string =>
  `{"jsonrpc":"2.0","error":${JSON.stringify(errorOf(error, requestId))}${ID}${id}}`;

/** The answers of a batch, in the order of its calls; undefined when all were notifications. */
export const batchText = (answers: readonly (string | undefined)[]): string | undefined => {
  const said = answers.filter((answer) => answer !== undefined);
  return said.length === 0 ? undefined : `[${said.join(",")}]`;
};
