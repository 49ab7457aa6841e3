import {
  ProtocolError,
  ProtocolErrorCode,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UnsupportedProtocolVersionError,
} from "@modelcontextprotocol/client";
import { cleanSentence } from "#kit/clean-words.ts";
import { ProgramNotStarted } from "#kit/programs/start.ts";
import { ToolError } from "../tool.ts";

/** The maximum length of a reason. */
const CHARACTERS = 200;

// An error of the client itself has another class than the error that a server answers with, whatever its code and words.

/** Its session has ended, or the server may speak another revision now: the next call begins with a new connection. */
export function isExpired(error: unknown, isModern: boolean): boolean {
  if (isOtherRevision(error)) return true;
  if (!(error instanceof SdkHttpError)) return false;
  return error.status === 404 || (error.status === 400 && (isModern || refusesRevision(bodyOf(error))));
}

/** True if a server refuses the revision but does not repeat the id of the request, as servers without sessions do. */
function refusesRevision(body: string): boolean {
  return /"code": ?-32022\b/.test(body);
}

/** True for a refusal by which the server says that it speaks another revision. The refused call was not made. */
export function isOtherRevision(error: unknown): boolean {
  return error instanceof UnsupportedProtocolVersionError;
}

export function isUnknownMethod(error: unknown): boolean {
  return error instanceof ProtocolError && error.code === ProtocolErrorCode.MethodNotFound;
}

export function isLate(error: unknown): boolean {
  return error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout;
}

/** The reason why a server did not start, or why a call failed, as the predicate of a sentence. */
export function reasonOf(error: unknown): string {
  if (error instanceof ToolError) return error.message;
  if (error instanceof ProgramNotStarted) return "its program cannot be started";
  if (error instanceof ProtocolError) return cleanSentence(`MCP error ${error.code}: ${error.message}`, CHARACTERS);
  if (error instanceof SdkHttpError) {
    const body = bodyOf(error);
    return cleanSentence(`it answered ${error.status}${body === "" ? "" : `: ${body}`}`, CHARACTERS);
  }
  if (isLate(error)) return "it did not answer in time";
  if (error instanceof SdkError) return reasonOfClient(error);
  return cleanSentence(String((error as Partial<Error>).message ?? "it failed"), CHARACTERS);
}

function reasonOfClient({ code, data, message, cause }: SdkError): string {
  if (code === SdkErrorCode.ConnectionClosed) return "it has ended";
  if (code === SdkErrorCode.EraNegotiationFailed && cause === undefined)
    return "it supports none of the gateway's MCP revisions";
  if (code === SdkErrorCode.UnsupportedResultType) return reasonOfType((data as { resultType?: unknown }).resultType);
  return cleanSentence(cause instanceof Error ? cause.message : message, CHARACTERS);
}

/** The reason why an answer is not a result. The gateway has no one to ask for input, and waits for results only. */
function reasonOfType(type: unknown): string {
  if (type === "input_required") return "it requested input, which the gateway does not support";
  if (type === "task") return "it started a task, and the gateway accepts only results";
  return cleanSentence(`its result has the unknown type "${type}"`, CHARACTERS);
}

/** The text of an HTTP server's refusal. */
function bodyOf({ data }: SdkHttpError): string {
  return typeof data.text === "string" ? data.text : "";
}
