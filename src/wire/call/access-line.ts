import type { GatewayError } from "#kit/errors.ts";

/** The outcome of one call, as its door reports it. The first error and the first turn count. */
export class Outcome {
  /** The operation or method, `batch`, or `unknown`; never a name that the caller made up. */
  operation = "unknown";
  /** The name of the error, and its detail. */
  error: string | undefined = undefined;
  reason: string | undefined = undefined;
  turnId: string | undefined = undefined;
  /** A call of RPC starts or changes something. */
  changes = false;

  reached(operation: string): void {
    this.operation = operation;
  }

  changed(): void {
    this.changes = true;
  }

  started(turnId: string | undefined): void {
    this.turnId ??= turnId;
  }

  failed({ name, detail, extra }: GatewayError): void {
    this.turnId ??= extra.turnId;
    if (this.error !== undefined) return;
    this.error = name;
    this.reason = detail;
  }
}

/** The facts of one request for its line in the access log. Doors report them as they learn them; the front writes the line. */
export class AccessLine extends Outcome {
  surface: "rest" | "rpc" | "hooks" | "public" = "public";
  caller: string | undefined = undefined;
  /** The body of an authenticated caller, from when it is read until the call succeeds. A refusal is recorded with it. */
  body: Buffer | undefined = undefined;

  entered(surface: AccessLine["surface"]): void {
    this.surface = surface;
  }

  authenticated(caller: string): void {
    this.caller = caller;
  }

  received(body: Buffer | undefined): void {
    this.body = body;
  }

  succeeded(): void {
    this.body = undefined;
  }
}
