import type { JSONRPCMessage } from "@modelcontextprotocol/client";

/** The maximum number of tools of a server, and so of a page of its list. */
export const TOOLS = 500;
/** The maximum number of parts of a result. A model sees a note in place of the others. */
const PARTS = 1_000;

/**
 * A message with the part of a result that the gateway uses. The client checks everything that it gets, and describes each fault at length:
 * a hostile result of 100 000 small values would block all others for seconds.
 */
export function usedOf(message: JSONRPCMessage): JSONRPCMessage {
  if (!("result" in message) || !isRecord(message.result)) return message;
  const { _meta, ...result } = message.result;
  const { tools, content } = result;
  if (Array.isArray(tools)) return { ...message, result: { ...result, tools: tools.slice(0, TOOLS).map(usedOfTool) } };
  if (Array.isArray(content)) return { ...message, result: { ...result, content: usedOfContent(content) } };
  return message;
}

function usedOfTool(tool: unknown): unknown {
  return isRecord(tool) ? picked(tool, ["name", "title", "description", "inputSchema"]) : tool;
}

function usedOfContent(content: readonly unknown[]): unknown[] {
  const parts = content.slice(0, PARTS).map(usedOfPart);
  const more = content.length - parts.length;
  return more > 0 ? [...parts, { type: "text", text: `[cut here: ${more} more parts]` }] : parts;
}

/** Data that is not text is not shown, and its Base64 not checked. */
function usedOfPart(part: unknown): unknown {
  if (!isRecord(part)) return part;
  const used = picked(part, ["type", "text", "data", "mimeType", "uri", "name", "resource"]);
  if (typeof used.data === "string") used.data = "";
  if (isRecord(used.resource)) {
    const resource = picked(used.resource, ["uri", "mimeType", "text", "blob"]);
    if (typeof resource.blob === "string") resource.blob = "";
    used.resource = resource;
  }
  return used;
}

type Fields = Record<string, unknown>;

function picked(from: Fields, names: readonly string[]): Fields {
  return Object.fromEntries(names.filter((name) => from[name] !== undefined).map((name) => [name, from[name]]));
}

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
