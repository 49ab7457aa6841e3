// Copied by "npm run generate" from scripts/generate/runtime/typescript/call-options.ts; do not edit.
/** The longest time of a JavaScript timer. A timer with a longer time fires at once. */
const MOST_TIMEOUT_MS = 2 ** 31 - 1;

/** Throws a TypeError for a number that is not a limit. */
export function checkNumbers({ timeoutMs, maxRetries }: { timeoutMs?: unknown; maxRetries?: unknown }): void {
  if (timeoutMs !== undefined && !(typeof timeoutMs === "number" && timeoutMs > 0 && timeoutMs <= MOST_TIMEOUT_MS))
    throw new TypeError(
      `\`timeoutMs\` is ${String(timeoutMs)}. It must be a positive number of milliseconds, at most ${MOST_TIMEOUT_MS}.`,
    );
  if (maxRetries !== undefined && !(Number.isSafeInteger(maxRetries) && (maxRetries as number) >= 0))
    throw new TypeError(`\`maxRetries\` is ${String(maxRetries)}. It must be a whole number of at least 0.`);
}

/**
 * Throws a TypeError that names the options for a misspelt option or one in place of another argument, which JavaScript would ignore silently.
 * `query` is the argument before the options, which is sent as a query.
 */
export function refuseUnknown(
  call: string,
  { kind, isIdempotent }: { kind?: string; isIdempotent?: boolean },
  query: object | undefined,
  options: object,
): void {
  const known = ["signal", "timeoutMs", "maxRetries", "headers", ...(isIdempotent ? ["idempotencyKey"] : [])];
  checkNumbers(options);
  const refuse = (what: string, words: string): never => {
    throw new TypeError(`${call} has no ${what}. ${words}`);
  };
  for (const name of Object.keys(options))
    if (!known.includes(name)) refuse(`option \`${name}\``, `Its options are ${known.join(", ")}.`);
  for (const name of Object.keys(query ?? {})) {
    if (known.includes(name)) refuse(`\`${name}\` in its query`, "Options are the argument after the query.");
    if (kind === "stream" && name !== "after")
      refuse(`\`${name}\``, "It takes `after`, the id of the event after which the stream begins.");
  }
}
