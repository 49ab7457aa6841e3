import type { JSONRPCMessage } from "@modelcontextprotocol/client";

/** The maximum number of tools of a server, and so of a page of its list. */
export const TOOLS = 500;
/** The maximum number of revisions that a server offers. */
const VERSIONS = 100;
/** The maximum number of parts of a result. A model sees a note in place of the others. */
const PARTS = 1_000;

/**
 * A message with the part of a result that the gateway uses. The client checks everything that it gets, and describes each fault at length:
 * a hostile result of 100 000 small values would block all others for seconds.
 */
export function usedOf(message: JSONRPCMessage): JSONRPCMessage {
  if (!("result" in message) || !isRecord(message.result)) return message;
  const { _meta, ...result } = message.result;
  const used: Fields = result;
  if (Array.isArray(used.tools)) Object.assign(used, usedOfCaching(used));
  for (const [name, cut] of Object.entries(CUTS)) if (name in used) used[name] = cut(used[name]);
  return { ...message, result: used };
}

/** The used part of each field that can hold many values. A value of a wrong type is one fault, and stays as it is. */
const CUTS: Record<string, (value: unknown) => unknown> = {
  tools: (tools) => (Array.isArray(tools) ? tools.slice(0, TOOLS).map(usedOfTool) : tools),
  content: (content) => (Array.isArray(content) ? usedOfContent(content) : content),
  supportedVersions: (versions) => (Array.isArray(versions) ? versions.slice(0, VERSIONS) : versions),
  serverInfo: (info) => (isRecord(info) ? picked(info, ["name", "version"]) : info),
  capabilities: (capabilities) => (isRecord(capabilities) ? usedOfCapabilities(capabilities) : capabilities),
};

function usedOfCapabilities({ tools }: Fields): Fields {
  if (tools === undefined) return {};
  return { tools: isRecord(tools) ? picked(tools, ["listChanged"]) : tools };
}

/**
 * How long a list of tools is valid. One without a right time may be out of date at once: the client would refuse it, while it accepts
 * an answer to `server/discover` with the same fault.
 */
function usedOfCaching({ ttlMs, cacheScope }: Fields): Fields {
  return {
    ttlMs: Number.isSafeInteger(ttlMs) && Number(ttlMs) >= 0 ? ttlMs : 0,
    cacheScope: cacheScope === "public" ? cacheScope : "private",
  };
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
