/**
 * The operations whose answers hide nothing: they return messages, replies and ids as stored, and one returns the caller's own token. The
 * others show records.
 */
const CONTENT: ReadonlySet<string> = new Set([
  "chat.send",
  "completions.create",
  "skills.trigger",
  "turns.get",
  "turns.list",
  "turns.cancel",
  "turns.events",
  "codes.redeem",
]);

export function returnsContent(operation: string): boolean {
  return CONTENT.has(operation);
}
