import type { ErrorName } from "#generated/clients/typescript/src/error-names.ts";
import type { ClientErrorName, GatewayError } from "#generated/clients/typescript/src/index.ts";
import { oneLine } from "./output.ts";
import { asTyped } from "./typed.ts";

const FAILED = 1;
export const USAGE = 2;
export const UNREACHABLE = 3;
export const NOT_ALLOWED = 4;
export const NOT_FOUND = 5;
export const LIMITED = 6;
const TURN_FAILED = 7;
export const INTERRUPTED = 130;

/** A failure with words for the person at the terminal: what happened, and the next command or step. */
export class CliError extends Error {
  readonly exitCode: number;
  readonly next: string | undefined;

  constructor(message: string, exitCode = FAILED, next?: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause });
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

/** The error for an answer that does not have the shape of the contract. */
export function notAReply(url: string, cause?: unknown): CliError {
  return new CliError(
    `The server at ${url} sent an answer that is not from a gateway.`,
    UNREACHABLE,
    "name the gateway's own address: --url URL",
    cause,
  );
}

/** The reason of a failed `fetch`, in the words of the system. */
export function causeOf({ cause, message }: Error): string {
  return cause instanceof Error ? cause.message || String((cause as NodeJS.ErrnoException).code) : message;
}

/** A failure that the gateway or its client has named. The class itself is not loaded here. */
function isGatewayError(error: unknown): error is GatewayError {
  return error instanceof Error && "requestId" in error && "retryAfterMs" in error;
}

/** The options that stand for those of the client. */
const OPTIONS: Record<string, string> = { key: "--key", rpcToken: "--rpc-token", webhookToken: "--webhook-token" };

type Row = { exitCode: number; next: string };
const doctor = "agent-gateway doctor";
/** The help of the command that failed. */
const HELP = "--help";
const again = "try again later";
const turns = "agent-gateway turns list";

/** Every name of the contract's errors, and of the client's own. */
const ROWS: Record<ErrorName | Exclude<ClientErrorName, "bad-signature" | "closed">, Row> = {
  "connection-failed": { exitCode: UNREACHABLE, next: "agent-gateway serve, or name another gateway: --url URL" },
  timeout: { exitCode: UNREACHABLE, next: doctor },
  "not-a-gateway": { exitCode: UNREACHABLE, next: "name the gateway's own address: --url URL" },
  "no-token": { exitCode: NOT_ALLOWED, next: doctor },
  unauthenticated: { exitCode: NOT_ALLOWED, next: doctor },
  "key-expired": { exitCode: NOT_ALLOWED, next: "agent-gateway keys create NAME" },
  "tls-required": { exitCode: NOT_ALLOWED, next: "use the https:// address: --url URL" },
  forbidden: { exitCode: NOT_ALLOWED, next: "use a key that may do this: --key KEY" },
  "address-not-allowed": { exitCode: NOT_ALLOWED, next: "agent-gateway config show" },
  "origin-not-allowed": { exitCode: NOT_ALLOWED, next: "agent-gateway config show" },
  "agent-not-found": { exitCode: NOT_FOUND, next: "agent-gateway agents list" },
  "session-not-found": { exitCode: NOT_FOUND, next: "agent-gateway sessions list" },
  "turn-not-found": { exitCode: NOT_FOUND, next: turns },
  "skill-not-found": { exitCode: NOT_FOUND, next: "agent-gateway skills list" },
  "delivery-not-found": { exitCode: NOT_FOUND, next: "agent-gateway deliveries list" },
  "event-not-found": { exitCode: NOT_FOUND, next: "agent-gateway events list" },
  "notification-not-found": { exitCode: NOT_FOUND, next: "agent-gateway notifications list" },
  "endpoint-not-found": { exitCode: NOT_FOUND, next: "agent-gateway config show" },
  "key-not-found": { exitCode: NOT_FOUND, next: "agent-gateway keys list" },
  "budget-not-found": { exitCode: NOT_FOUND, next: "agent-gateway budgets" },
  "schedule-not-found": { exitCode: NOT_FOUND, next: "agent-gateway schedules" },
  "mapping-not-found": { exitCode: NOT_FOUND, next: "agent-gateway hooks test" },
  "not-found": { exitCode: NOT_FOUND, next: doctor },
  "method-not-found": { exitCode: NOT_FOUND, next: "agent-gateway openrpc" },
  "rate-limited": { exitCode: LIMITED, next: again },
  "budget-exceeded": { exitCode: LIMITED, next: "agent-gateway budgets" },
  "session-busy": { exitCode: LIMITED, next: "agent-gateway turns list --status queued" },
  "session-full": { exitCode: LIMITED, next: "agent-gateway sessions compact ID" },
  "share-busy": { exitCode: LIMITED, next: "agent-gateway turns list --status queued" },
  "share-full": { exitCode: LIMITED, next: "agent-gateway sessions list" },
  "gateway-busy": { exitCode: LIMITED, next: doctor },
  "store-full": { exitCode: LIMITED, next: doctor },
  "too-large": { exitCode: LIMITED, next: "agent-gateway config show" },
  "store-unavailable": { exitCode: LIMITED, next: doctor },
  "agent-unavailable": { exitCode: LIMITED, next: "agent-gateway agents list" },
  "shutting-down": { exitCode: UNREACHABLE, next: again },
  "turn-failed": { exitCode: TURN_FAILED, next: turns },
  "turn-timeout": { exitCode: TURN_FAILED, next: turns },
  "turn-cancelled": { exitCode: TURN_FAILED, next: turns },
  "agent-removed": { exitCode: TURN_FAILED, next: "agent-gateway agents list" },
  "invalid-request": { exitCode: USAGE, next: HELP },
  "invalid-params": { exitCode: USAGE, next: HELP },
  "unknown-model": { exitCode: USAGE, next: "agent-gateway agents list" },
  "method-not-allowed": { exitCode: USAGE, next: "agent-gateway openapi" },
  "parse-error": { exitCode: USAGE, next: HELP },
  "unsupported-media-type": { exitCode: USAGE, next: HELP },
  "uri-too-long": { exitCode: USAGE, next: HELP },
  "headers-too-large": { exitCode: USAGE, next: HELP },
  "upgrade-required": { exitCode: USAGE, next: "agent-gateway chat AGENT" },
  "request-timeout": { exitCode: UNREACHABLE, next: again },
  "idempotency-in-progress": { exitCode: LIMITED, next: again },
  "idempotency-mismatch": { exitCode: USAGE, next: HELP },
  "session-conflict": { exitCode: FAILED, next: "agent-gateway sessions list" },
  "turn-ended": { exitCode: FAILED, next: turns },
  "turn-running": { exitCode: FAILED, next: "agent-gateway turns list --status running" },
  "delivery-not-replayable": { exitCode: FAILED, next: "agent-gateway deliveries curl ID" },
  "reply-not-announceable": { exitCode: FAILED, next: "agent-gateway turns show ID" },
  "notification-not-replayable": { exitCode: FAILED, next: "agent-gateway config show" },
  "event-not-dead": { exitCode: FAILED, next: "agent-gateway events list" },
  "heartbeat-off": { exitCode: FAILED, next: "agent-gateway config show" },
  "key-replaced": { exitCode: FAILED, next: "agent-gateway keys list" },
  internal: { exitCode: FAILED, next: doctor },
};

/** A name without a row comes from a newer gateway. */
function rowOf(name: string): Row {
  return Object.hasOwn(ROWS, name) ? ROWS[name as keyof typeof ROWS] : { exitCode: FAILED, next: doctor };
}

export function exitCodeOf(error: unknown): number {
  if (error instanceof CliError) return error.exitCode;
  return isGatewayError(error) ? rowOf(error.name).exitCode : FAILED;
}

/** The words for the person at the terminal. `command` is the one that failed. */
export function wordsFor(error: unknown, command: string): string {
  const help = `${command} --help`;
  if (error instanceof CliError) return withNext(error.message, error.next ?? help);
  if (isGatewayError(error)) return wordsForGatewayError(error, help);
  // A mistake that a library or Node describes. Any other error is a bug of the gateway, and its stack helps to fix it.
  const { name, message, cause, stack } = error as Error;
  if (name === "ConfigError") return withNext(message, "agent-gateway check");
  if (name === "TypeError") return withNext(message, help);
  return cause !== undefined || "code" in (error as Error) ? withNext(message, help) : (stack ?? String(error));
}

function wordsForGatewayError(error: GatewayError, help: string): string {
  const { name, requestId, turnId, retryAfterMs } = error;
  const facts = oneLine([name, ...(requestId ? [requestId] : [])].join(", "));
  const wait = retryAfterMs === undefined ? "" : ` Try again in ${Math.ceil(retryAfterMs / 1_000)} s.`;
  const detail = error.detail?.replace(/Pass `(\w+)` to the client/, (words, option: string) =>
    Object.hasOwn(OPTIONS, option) ? `Pass ${OPTIONS[option]}` : words,
  );
  const { exitCode, next } = rowOf(name);
  const ofTurn =
    exitCode === TURN_FAILED && turnId !== undefined ? `agent-gateway turns show ${oneLine(turnId)}` : undefined;
  return withNext(`${oneLine(detail ?? error.title)}${wait} (${facts})`, ofTurn ?? (next === HELP ? help : next));
}

function withNext(message: string, next: string): string {
  return `${message}\nNext: ${asTyped(next)}`;
}
