import { type ErrorName, errors } from "#generated/errors.ts";

/** The `error` of a JSON-RPC response. */
export interface RpcErrorObject {
  code: number;
  message: string;
  data?: { name?: string; detail?: string; requestId?: string; turnId?: string; retryAfterMs?: number };
}

/** The gateway refused a call or failed at it. `name` says how; decide by it. */
export class RpcError extends Error {
  /** A row of the error table; `unknown` for one that a newer gateway has added. */
  override readonly name: ErrorName | "unknown";
  readonly code: number;
  readonly detail: string | undefined;
  /** The gateway's log has the cause under it. */
  readonly requestId: string | undefined;
  readonly turnId: string | undefined;
  /** When the same call may succeed. */
  readonly retryAfterMs: number | undefined;

  constructor({ code, message, data = {} }: RpcErrorObject) {
    super(data.detail === undefined ? message : `${message}: ${data.detail}`);
    this.name = isErrorName(data.name) ? data.name : "unknown";
    this.code = code;
    this.detail = data.detail;
    this.requestId = data.requestId;
    this.turnId = data.turnId;
    this.retryAfterMs = data.retryAfterMs;
  }
}

export const isErrorName = (name: unknown): name is ErrorName =>
  typeof name === "string" && Object.hasOwn(errors, name);
