/** A short text as code. */
export function code(text: string): string {
  return `\`${text}\``;
}

/** A block of code. `tab` puts it into a group with its neighbours that have one. */
export function block(language: string, text: string, tab = ""): string {
  return `\`\`\`${language}${tab === "" ? "" : ` ${tab}`}\n${text.trimEnd()}\n\`\`\``;
}

export function pretty(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

/** The parts of a page that hold something, with an empty line between them. */
export function paragraphs(...parts: readonly string[]): string {
  return parts.filter((part) => part !== "").join("\n\n");
}
