import type { CallToolResult, ContentBlock } from "@modelcontextprotocol/sdk/types.js";

/** What a model is shown of a tool's answer: its texts, and of what is no text that it was there. No more than `most` characters. */
export const textOfAnswer = ({ content = [], structuredContent }: CallToolResult, most: number): string => {
  const text = content.map(textOf).join("\n");
  return cut(text === "" && structuredContent !== undefined ? JSON.stringify(structuredContent) : text, most);
};

const textOf = (block: ContentBlock): string => {
  if (block.type === "text") return block.text;
  if (block.type === "resource_link") return `[${block.name}: ${block.uri}]`;
  if (block.type === "resource")
    return "text" in block.resource ? block.resource.text : `[${block.resource.uri}, which is no text]`;
  return `[${block.type}, ${block.mimeType}, not shown]`;
};

const cut = (text: string, most: number): string => {
  if (text.length <= most) return text;
  const shown = text.slice(0, most).replace(/[\ud800-\udbff]$/, "");
  return `${shown}\n[cut here: ${text.length - shown.length} more characters]`;
};
