/**
 * The sync form of Python code that is written with async and await. Both clients have the same source: the differences (connections, waiting) are in
 * modules of the same names in `_async/` and `_sync/`.
 */
export function syncOf(source: string): string {
  return withoutAwaitable(source)
    .replace(/^.*# async only\n\n?/gm, "")
    .replace(/\basync (def|for|with)\b/g, "$1")
    .replace(/\bawait /g, "")
    .replace(/\b__a(iter|next|enter|exit)__/g, "__$1__")
    .replace(/\bStopAsyncIteration\b/g, "StopIteration")
    .replace(/\bAsyncPages\b/g, "Page")
    .replace(/\bAsync(?=[A-Z][a-z])/g, "")
    .replace(/\basync_(?=\w)/g, "")
    .replace(/\b_async\b/g, "_sync")
    .replace(/\bPage, Page\b/g, "Page")
    .replace(/\btasks of one event loop\b/g, "threads");
}

/** `Awaitable[Result]` becomes `Result`, and the name is not imported. */
function withoutAwaitable(source: string): string {
  const start = source.indexOf("Awaitable[");
  if (start < 0) return source.replace(/\bAwaitable, |, Awaitable\b/g, "");
  const open = start + "Awaitable".length;
  let depth = 0;
  let end = open;
  do {
    depth += source[end] === "[" ? 1 : source[end] === "]" ? -1 : 0;
    end += 1;
  } while (depth > 0);
  return withoutAwaitable(source.slice(0, start) + source.slice(open + 1, end - 1) + source.slice(end));
}
