// Copied by "npm run generate" from scripts/generate/runtime/clients/problem-error.ts; do not edit.
import type { ErrorName } from "../errors.ts";
import type { Problem } from "../rest-types.ts";
import { ConnectionError } from "./connection-error.ts";
import { isErrorName } from "./rpc-error.ts";

/** The gateway refused a request or failed at it, and said so with a problem. `name` says how; decide by it. */
export class ProblemError extends Error {
  /** A row of the error table; `unknown` for one that a newer gateway has added. */
  override readonly name: ErrorName | "unknown";
  readonly status: number;
  /** The gateway's log has the cause under it. */
  readonly requestId: string;
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail === undefined ? problem.title : `${problem.title}: ${problem.detail}`);
    const name = problem.type.split(":").at(-1);
    this.name = isErrorName(name) ? name : "unknown";
    this.status = problem.status;
    this.requestId = problem.request_id;
    this.problem = problem;
  }
}

/** The error that a response which is no success stands for. */
export async function errorOf(response: Response): Promise<ProblemError | ConnectionError> {
  const type = response.headers.get("content-type") ?? "";
  if (type.startsWith("application/problem+json")) return new ProblemError((await response.json()) as Problem);
  return new ConnectionError(`HTTP ${response.status} without a problem`);
}
