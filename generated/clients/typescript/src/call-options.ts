// Copied by "npm run generate" from scripts/generate/runtime/typescript/call-options.ts; do not edit.
/**
 * JavaScript takes a misspelt option, or one in the place of another argument, in silence. Throws a TypeError that names the options.
 * `query` is what stands before the options and is sent as a query.
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
      refuse(`\`${name}\``, "It takes `after`, the id of the event behind which the stream begins.");
  }
}
