// The answers of the tests' MCP server, on any transport, in the revision without sessions (2026-07-28) or before it.

export const MODERN = "2026-07-28";

function tool(name, description = `Does ${name}.`) {
  return {
    name,
    description,
    inputSchema: { type: "object", properties: { text: { type: "string" } } },
  };
}

const TOOLS = [
  "say",
  "fail",
  "picture",
  "structured",
  "hang",
  "crash",
  "stuck",
  "endless",
  "lingers",
  "refuse",
  "env",
  "lists",
  "meta",
  "other",
  "flood",
  "ask",
  "tell",
  "values",
  "result",
  "parts",
  "a.name/of another world",
];

/** The number of calls. */
const asked = { lists: 0 };

const CALLS = {
  lists: () => ({ content: [{ type: "text", text: String(asked.lists) }] }),
  meta: (_, meta) => ({ content: [{ type: "text", text: JSON.stringify(meta) }] }),
  say: ({ text }) => ({ content: [{ type: "text", text: `You said ${text}.` }] }),
  fail: () => ({ isError: true, content: [{ type: "text", text: "There is no such customer." }] }),
  picture: () => ({
    content: [
      { type: "image", data: "AAAA", mimeType: "image/png" },
      { type: "resource", resource: { uri: "file:///a.txt", text: "a text" } },
      { type: "resource_link", uri: "file:///b.txt", name: "b" },
    ],
  }),
  values: () => ({ content: [], structuredContent: { values: Array.from({ length: 100_000 }, () => 0) } }),
  parts: ({ text }) => {
    const [count, type] = text.split(" ");
    return { content: Array.from({ length: Number(count) }, (_, n) => ({ type, text: `part ${n}` })) };
  },
  // A result of any type.
  result: ({ text }) => JSON.parse(text),
  structured: () => ({ content: [], structuredContent: { total: 3 } }),
  env: () => ({ content: [{ type: "text", text: Object.keys(process.env).sort().join(" ") }] }),
};

/** A request of its own. @param {string} method @param {number} n */
export function requestOf(method, n) {
  return JSON.stringify({ jsonrpc: "2.0", id: `own-${n}`, method });
}

/** The acknowledgement of a subscription. @param {{ id?: unknown, params?: any }} message */
export function acknowledgementOf({ id, params }) {
  const about = { _meta: { "io.modelcontextprotocol/subscriptionId": id }, notifications: params.notifications };
  return { jsonrpc: "2.0", method: "notifications/subscriptions/acknowledged", params: about };
}

/** @param {{ id?: unknown, method: string, params?: any }} message @param {string} how @param {string} revision @returns {object | undefined} */
export function answerOf({ id, method, params }, how, revision = "2025-11-25") {
  if (id === undefined) return undefined;
  const result = (revision === MODERN ? modernResultOf : resultOf)(method, params, how);
  if (result === "nothing") return undefined;
  if (result === undefined) return { jsonrpc: "2.0", id, error: { code: -32601, message: "Method not found" } };
  return { jsonrpc: "2.0", id, result };
}

function modernResultOf(method, params, how) {
  if (method === "subscriptions/listen") return "nothing";
  if (method === "initialize" || method === "ping") return undefined;
  // For ever, if the client believed it.
  const cached = { resultType: "complete", ttlMs: Number.MAX_SAFE_INTEGER, cacheScope: "public" };
  if (method === "server/discover") {
    const supportedVersions = how === "future" ? ["2099-01-01", 1] : [MODERN];
    return { ...cached, supportedVersions, capabilities: { tools: { listChanged: true } } };
  }
  const result = resultOf(method, params, how);
  return typeof result === "object" ? { ...cached, ...result } : result;
}

function resultOf(method, params, how) {
  if (method === "initialize") {
    const protocolVersion = how === "ancient" ? "1999".repeat(10_000) : params.protocolVersion;
    return { protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "stand-in", version: "1.0.0" } };
  }
  if (method === "ping") return {};
  if (method === "tools/list") {
    const from = Number(params?.cursor ?? 0);
    asked.lists++;
    if (how === "huge") {
      const large = { type: "object", description: "x".repeat(1024 * 1024) };
      return {
        tools: [{ ...tool("large"), inputSchema: large }, { ...tool("wordy", "x".repeat(70_000)) }, tool("say")],
      };
    }
    if (how === "loop") return { tools: [tool("say"), tool("lists")], nextCursor: from === 1 ? "2" : "1" };
    const crowd = { crowd: 100_000, thousands: 10_000 }[how];
    if (crowd) return { tools: Array.from({ length: crowd }, (_, n) => tool(`tool-${n}`, "x")) };
    const names = how === "many" ? Array.from({ length: 60 }, (_, n) => `tool-${n}`) : TOOLS;
    const page = how === "many" ? 25 : names.length;
    const next = from + page < names.length ? { nextCursor: String(from + page) } : {};
    return { tools: names.slice(from, from + page).map((name) => tool(name)), ...next };
  }
  if (method !== "tools/call") return undefined;
  return params.name === "hang" ? "nothing" : CALLS[params.name]?.(params.arguments, params._meta);
}
