import { type ErrorName, errors } from "#generated/errors.ts";
import type { OpenAiError } from "#generated/rest-types.ts";
import { wordsOf } from "./contract.ts";
import { chunkShape, openAiErrorShape } from "./shapes.ts";

// Validates answers to OpenAI clients against the contract, in addition to the checks of every reply.

export function isOpenAiPath(path: string): boolean {
  return /^\/v1(?:[/?]|$)/.test(path);
}

const NAMES: Readonly<Record<string, ErrorName>> = {
  model_not_found: "agent-not-found",
  invalid_api_key: "unauthenticated",
  rate_limit_exceeded: "rate-limited",
  insufficient_quota: "budget-exceeded",
};
const TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  429: "rate_limit_error",
};

/** The error of a refusal in the error table. */
export function openAiErrorNameOf({ error: { code } }: OpenAiError): ErrorName {
  return NAMES[code] ?? (code.replaceAll("_", "-") as ErrorName);
}

export function openAiErrorFaults(
  listed: readonly ErrorName[],
  body: OpenAiError,
  status: number,
  headers: Headers,
): string[] {
  const name = openAiErrorNameOf(body);
  const row = errors[name];
  if (!row) return [`${name} is no row of the error table`];
  const { message, type } = body.error;
  const found: string[] = [];
  if (!listed.includes(name)) found.push(`${name} is not among its x-errors`);
  if (row.status !== status) found.push(`${name} has the status ${row.status}`);
  if (!message.startsWith(row.title)) found.push(`${name} has the title ${row.title}`);
  const expected = TYPES[status] ?? (status < 500 ? "invalid_request_error" : "server_error");
  if (type !== (name === "budget-exceeded" ? "insufficient_quota" : expected))
    found.push(`${status} has the type ${type}`);
  if (name === "internal" && message !== `${row.title}.`) found.push("internal reveals its cause");
  const isFinal = name === "budget-exceeded" && headers.get("idempotent-replayed") === "true";
  const retry = row.retry && !isFinal;
  const isSoon = Number(headers.get("retry-after")) <= 60;
  if (headers.get("x-should-retry") !== String(retry && isSoon)) found.push(`x-should-retry is not ${retry && isSoon}`);
  if (headers.has("retry-after") !== retry && name !== "unauthenticated")
    found.push(`${name} comes ${row.retry ? "without" : "with"} Retry-After`);
  return found;
}

const DONE = "[DONE]";

/** Validates a stream while it arrives: chunks and then `[DONE]`, or an error and nothing more. */
export function createChunkReader(onFault: (fault: string) => void) {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let rest = "";
  let last: unknown;
  const isOver = () => last === DONE || (typeof last === "object" && last !== null && "error" in last);
  const read = (block: string): void => {
    if (block === ":") return;
    if (isOver()) onFault(`behind the end of the stream comes ${block.slice(0, 200)}`);
    if (!block.startsWith("data: ")) {
      onFault(`the stream holds ${block.slice(0, 200)}`);
      return;
    }
    const data = block.slice(6);
    last = data === DONE ? DONE : JSON.parse(data);
    const validate = isOver() ? openAiErrorShape() : chunkShape();
    if (last !== DONE && !validate(last)) for (const fault of wordsOf(validate)) onFault(`the event ${data}: ${fault}`);
  };
  return {
    push(bytes: Uint8Array): void {
      rest += decoder.decode(bytes, { stream: true });
      for (let at = rest.indexOf("\n\n"); at >= 0; at = rest.indexOf("\n\n")) {
        read(rest.slice(0, at));
        rest = rest.slice(at + 2);
      }
    },
    end(): void {
      if (rest !== "") onFault(`the stream ends inside ${rest.slice(0, 200)}`);
      if (last !== undefined && !isOver()) onFault(`the stream ends after ${JSON.stringify(last)}`);
    },
  };
}
