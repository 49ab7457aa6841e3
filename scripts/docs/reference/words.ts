/** A short text as code. */
export function code(text: string): string {
  return `\`${text}\``;
}

/** A block of code. `tab` adds it to a group with adjacent blocks that have one. */
export function block(language: string, text: string, tab = ""): string {
  return `\`\`\`${language}${tab === "" ? "" : ` ${tab}`}\n${text.trimEnd()}\n\`\`\``;
}

export function pretty(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** The non-empty parts of a page, with an empty line between them. */
export function paragraphs(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("\n\n");
}
