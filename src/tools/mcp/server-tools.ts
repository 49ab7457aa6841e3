import { createHash } from "node:crypto";
import type { CallToolResult, Client, ContentBlock, StandardSchemaV1 } from "@modelcontextprotocol/client";
import { HEADER_KEYWORD, hasWrongHeader } from "./param-headers.ts";
import { TOOLS } from "./used.ts";

/** A tool of a server, as far as the gateway uses its definition. */
export type ServerTool = {
  name: string;
  title?: string;
  description?: string;
  inputSchema: { type: "object"; [key: string]: unknown };
};

/**
 * The tools of a server. `large`, `wrong`: the names of those that are too large, or ask for headers wrongly. `ttlMs`: the time after
 * which the list may have changed.
 */
export type Listed = {
  tools: readonly ServerTool[];
  large: readonly string[];
  wrong: readonly string[];
  ttlMs: number;
};

const PAGES = 20;
/** The longest time for which a list is used if its server may name one. */
const LONGEST_TTL_MS = 24 * 60 * 60_000;
const TOOL_CHARACTERS = 64 * 1024;
const ALL_CHARACTERS = 1024 * 1024;

/** The maximum length of the reported name of an omitted tool. */
const REPORTED_CHARACTERS = 100;

/**
 * Reads the tools of a server. A tool's definition goes to the model with every request: a large one is left out, and so is each
 * that exceeds the total.
 */
export async function listTools(client: Client, timeoutMs: number): Promise<Listed> {
  const tools: ServerTool[] = [];
  const large: string[] = [];
  const wrong: string[] = [];
  const isModern = client.getProtocolEra() === "modern";
  const sendsHeaders = isModern && client.transport?.hasPerRequestStream === true;
  // A server may repeat its pages without end: no page is read twice, and no name is offered twice.
  const names = new Set<string>();
  const cursors = new Set<string>();
  let left = ALL_CHARACTERS;
  let unread = TOOLS;
  let cursor: string | undefined;
  // A server of an earlier revision names no time.
  let ttlMs = isModern ? LONGEST_TTL_MS : Number.POSITIVE_INFINITY;
  for (let page = 0; page < PAGES && unread > 0; page++) {
    const params = cursor === undefined ? {} : { cursor };
    // Not by the client's own method, which stores the list, reads more pages, and writes names of a server to the console.
    const listed = await client.request({ method: "tools/list", params }, PAGE, { timeout: timeoutMs });
    const some = listed.tools.slice(0, unread);
    unread -= some.length;
    if (isModern) ttlMs = Math.min(ttlMs, listed.ttlMs);
    for (const tool of some) {
      if (names.has(tool.name)) continue;
      names.add(tool.name);
      const schema = JSON.stringify(tool.inputSchema);
      const characters = tool.name.length + (tool.description ?? "").length + schema.length;
      if (sendsHeaders && schema.includes(`"${HEADER_KEYWORD}"`) && hasWrongHeader(tool.inputSchema))
        wrong.push(tool.name.slice(0, REPORTED_CHARACTERS));
      else if (characters > TOOL_CHARACTERS || characters > left) large.push(tool.name.slice(0, REPORTED_CHARACTERS));
      else {
        left -= characters;
        tools.push(tool);
      }
    }
    cursor = listed.nextCursor;
    if (cursor === undefined || cursors.has(cursor)) break;
    cursors.add(cursor);
  }
  return { tools, large, wrong, ttlMs };
}

type Page = { tools: readonly ServerTool[]; nextCursor: string | undefined; ttlMs: number };

/** Checks a page of a list. The client's own check takes long for schemas with many properties. */
const PAGE: StandardSchemaV1<unknown, Page> = {
  "~standard": {
    version: 1,
    vendor: "agent-gateway",
    validate(page) {
      const { tools, nextCursor, ttlMs } = page as Partial<Record<keyof Page, unknown>>;
      if (!Array.isArray(tools)) return { issues: [{ message: "`tools` is not a list" }] };
      const wrong = tools.findIndex((tool) => !isTool(tool));
      if (wrong >= 0) return { issues: [{ message: `tool ${wrong + 1} is not a tool` }] };
      return {
        value: { tools, nextCursor: typeof nextCursor === "string" ? nextCursor : undefined, ttlMs: Number(ttlMs) },
      };
    },
  },
};

function isTool(value: unknown): value is ServerTool {
  const { name, title, description, inputSchema } = (value ?? {}) as Partial<Record<keyof ServerTool, unknown>>;
  const isText = (text: unknown) => text === undefined || typeof text === "string";
  const type = (inputSchema as { type?: unknown } | null | undefined)?.type;
  return typeof name === "string" && isText(title) && isText(description) && type === "object";
}

const LONGEST_NAME = 64;
const SUFFIX = 6;

/**
 * A tool's name for models, 64 letters, digits, `_` and `-`: its server's name and its own. If that name is cut or changed, its
 * end distinguishes it from other names with the same result.
 */
export function modelNameOf(server: string, tool: string): string {
  const whole = `${server}__${tool}`;
  const plain = whole.replace(/[^A-Za-z0-9_-]/g, "_");
  if (plain === whole && plain.length <= LONGEST_NAME) return plain;
  const told = createHash("sha256").update(whole).digest("hex").slice(0, SUFFIX);
  return `${plain.slice(0, LONGEST_NAME - SUFFIX - 1)}_${told}`;
}

/**
 * The text of a tool's answer for a model: its texts, and a placeholder for any other content. No more than `most` characters.
 */
export function textOfAnswer({ content = [], structuredContent }: CallToolResult, most: number): string {
  const text = content.map(textOf).join("\n");
  return cut(text === "" && structuredContent !== undefined ? JSON.stringify(structuredContent) : text, most);
}

function textOf(block: ContentBlock): string {
  if (block.type === "text") return block.text;
  if (block.type === "resource_link") return `[${block.name}: ${block.uri}]`;
  if (block.type === "resource")
    return "text" in block.resource ? block.resource.text : `[${block.resource.uri}, which is not text]`;
  return `[${block.type}, ${block.mimeType}, not shown]`;
}

function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  const shown = text.slice(0, most).replace(/[\ud800-\udbff]$/, "");
  return `${shown}\n[cut here: ${text.length - shown.length} more characters]`;
}
