import type { GatewayError } from "#kit/errors.ts";

/** The outcome of a call, as its transport reports it. If there are several errors or turns, the first is recorded. */
export class Outcome {
  /** The operation or method, `batch`, or `unknown`; never an unknown name that the caller sent. */
  operation = "unknown";
  /** The name of the error, and its detail. */
  error: string | undefined = undefined;
  reason: string | undefined = undefined;
  turnId: string | undefined = undefined;
  /** True if an RPC call starts or changes something. */
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

/** The values for the access log line of a request. The transports set them as they become known; `front.ts` writes the line. */
export class AccessLine extends Outcome {
  surface: "rest" | "rpc" | "hooks" | "public" = "public";
  caller: string | undefined = undefined;
  /** The request body of an authenticated caller, until the call succeeds. If the call is refused, the body is recorded. */
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
