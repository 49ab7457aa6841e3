import type { AgentGatewayError } from "#generated/clients/typescript/src/index.ts";

export const FAILED = 1;
export const USAGE = 2;
export const UNREACHABLE = 3;
export const NOT_ALLOWED = 4;
export const NOT_FOUND = 5;
export const LIMITED = 6;
export const TURN_FAILED = 7;
export const INTERRUPTED = 130;

/** A failure with words for the person at the terminal: what happened, and the next command or step. */
export class CliError extends Error {
  readonly exitCode: number;
  readonly next: string | undefined;

  constructor(message: string, exitCode = FAILED, next?: string) {
    super(message);
    this.exitCode = exitCode;
    this.next = next;
  }
}

/** A mistake in the command line. */
export class UsageError extends CliError {
  constructor(message: string, next?: string) {
    super(message, USAGE, next);
  }
}

/** A failure that the gateway or its client has named. The class itself is not loaded here. */
const isGatewayError = (error: unknown): error is AgentGatewayError =>
  error instanceof Error && "requestId" in error && "retryAfterMs" in error;

/** The options that stand for those of the client. */
const OPTIONS: Record<string, string> = { restKey: "--key", rpcToken: "--rpc-token", webhookToken: "--webhook-token" };

type Row = { exitCode: number; next?: string };
const doctor = "agent-gateway doctor";

const ROWS: Record<string, Row> = {
  "connection-failed": { exitCode: UNREACHABLE, next: "agent-gateway serve, or name another gateway: --url URL" },
  timeout: { exitCode: UNREACHABLE, next: doctor },
  "not-a-gateway": { exitCode: UNREACHABLE, next: "name the gateway's own address: --url URL" },
  "no-token": { exitCode: NOT_ALLOWED, next: doctor },
  unauthenticated: { exitCode: NOT_ALLOWED, next: doctor },
  "key-expired": { exitCode: NOT_ALLOWED, next: "agent-gateway keys create NAME" },
  "tls-required": { exitCode: NOT_ALLOWED, next: "use the https:// address: --url URL" },
  forbidden: { exitCode: NOT_ALLOWED, next: "use a key that may do this: --key KEY" },
  "address-not-allowed": { exitCode: NOT_ALLOWED },
  "origin-not-allowed": { exitCode: NOT_ALLOWED },
  "agent-not-found": { exitCode: NOT_FOUND, next: "agent-gateway agents list" },
  "session-not-found": { exitCode: NOT_FOUND, next: "agent-gateway sessions list" },
  "turn-not-found": { exitCode: NOT_FOUND, next: "agent-gateway turns list" },
  "skill-not-found": { exitCode: NOT_FOUND, next: "agent-gateway skills list" },
  "delivery-not-found": { exitCode: NOT_FOUND, next: "agent-gateway deliveries list" },
  "event-not-found": { exitCode: NOT_FOUND, next: "agent-gateway events list" },
  "key-not-found": { exitCode: NOT_FOUND, next: "agent-gateway keys list" },
  "mapping-not-found": { exitCode: NOT_FOUND, next: "agent-gateway hooks test" },
  "not-found": { exitCode: NOT_FOUND },
  "method-not-found": { exitCode: NOT_FOUND, next: "agent-gateway openrpc" },
  "rate-limited": { exitCode: LIMITED },
  "session-busy": { exitCode: LIMITED, next: "agent-gateway turns list --status queued" },
  "session-full": { exitCode: LIMITED, next: "agent-gateway sessions compact ID" },
  "gateway-busy": { exitCode: LIMITED, next: doctor },
  "store-full": { exitCode: LIMITED, next: doctor },
  "too-large": { exitCode: LIMITED },
  "store-unavailable": { exitCode: LIMITED, next: doctor },
  "agent-unavailable": { exitCode: LIMITED, next: "agent-gateway agents list" },
  "shutting-down": { exitCode: UNREACHABLE },
  "turn-failed": { exitCode: TURN_FAILED },
  "turn-timeout": { exitCode: TURN_FAILED },
  "turn-cancelled": { exitCode: TURN_FAILED },
  "agent-removed": { exitCode: TURN_FAILED, next: "agent-gateway agents list" },
  "invalid-request": { exitCode: USAGE },
  "invalid-params": { exitCode: USAGE },
  "unknown-model": { exitCode: USAGE, next: "agent-gateway agents list" },
};

export const exitCodeOf = (error: unknown): number => {
  if (error instanceof CliError) return error.exitCode;
  return isGatewayError(error) ? (ROWS[error.name]?.exitCode ?? FAILED) : FAILED;
};

/** What the person at the terminal reads. */
export const wordsFor = (error: unknown): string => {
  if (error instanceof CliError) return withNext(error.message, error.next);
  if (isGatewayError(error)) {
    const { name, requestId, turnId, retryAfterMs } = error;
    const facts = [name, ...(requestId ? [requestId] : [])].join(", ");
    const wait = retryAfterMs === undefined ? "" : ` Try again in ${Math.ceil(retryAfterMs / 1_000)} s.`;
    const detail = error.detail?.replace(
      /Pass `(\w+)` to the client/,
      (_, option: string) => `Pass ${OPTIONS[option]}`,
    );
    const isTurn = ROWS[name]?.exitCode === TURN_FAILED && turnId !== undefined;
    return withNext(
      `${detail ?? error.title}${wait} (${facts})`,
      isTurn ? `agent-gateway turns show ${turnId}` : ROWS[name]?.next,
    );
  }
  const { name, message, cause, stack } = error as Error;
  // A mistake that a library or Node has put into words. Anything else is a fault of ours, and its place helps to mend it.
  return cause !== undefined || name === "ConfigError" || name === "TypeError" || "code" in (error as Error)
    ? message
    : (stack ?? String(error));
};

const withNext = (message: string, next: string | undefined): string => (next ? `${message}\nNext: ${next}` : message);
