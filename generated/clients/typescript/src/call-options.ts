// Copied by "npm run generate" from scripts/generate/runtime/typescript/call-options.ts; do not edit.
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
