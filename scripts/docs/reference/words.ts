/** A short text as code. */
export const code = (text: string): string => `\`${text}\``;

/** A block of code. `tab` puts it into a group with its neighbours that have one. */
export const block = (language: string, text: string, tab = ""): string =>
  `\`\`\`${language}${tab === "" ? "" : ` ${tab}`}\n${text.trimEnd()}\n\`\`\``;

export const pretty = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value, null, 2));

/** The parts of a page that hold something, with an empty line between them. */
export const paragraphs = (...parts: readonly string[]): string => parts.filter((part) => part !== "").join("\n\n");
