// A coding agent with version 1 of the Agent Client Protocol, with one JSON-RPC message per line. Its first argument determines its start; the end of
// a prompt, `do: what`, determines the turn, even inside a fence.
import { spawn } from "node:child_process";

const [begin = "well"] = process.argv.slice(2);
function write(text) {
  return new Promise((resolve) => process.stdout.write(text, resolve));
}
function send(message) {
  return write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}
function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
const told = { cancels: 0 };
const sessionId = "session-1";
const waiting = new Map();
let asked = 0;
let cancelled = false;
let model = "small";

function ask(method, params) {
  return new Promise((resolve) => {
    waiting.set(++asked, resolve);
    void send({ id: asked, method, params });
  });
}
function update(update) {
  return send({ method: "session/update", params: { sessionId, update } });
}
function say(text, messageId) {
  return update({ sessionUpdate: "agent_message_chunk", content: { type: "text", text }, messageId });
}
function useTool(status, more = {}) {
  return update({
    sessionUpdate: status === "pending" ? "tool_call" : "tool_call_update",
    toolCallId: "call-1",
    status,
    ...more,
  });
}

const DEEDS = {
  tell: () => say(JSON.stringify({ ...told, model, env: process.env })),
  meta: () => say(JSON.stringify(told.meta)),
  bye: () => say("farewell"),
  pid: () => say(String(process.pid)),
  async slow() {
    for (let n = 0; n < 15 && !cancelled; n++) {
      await say(`piece ${n} `);
      await sleep(100);
    }
    return cancelled ? "cancelled" : "end_turn";
  },
  async paced() {
    for (let n = 0; n < 4; n++) {
      await say(`piece ${n} `);
      await sleep(10);
    }
  },
  never: () => sleep(60_000),
  async silent() {
    await say("so far");
    await sleep(60_000);
  },
  async endless() {
    while (!cancelled) {
      await say("word ");
      await sleep(20);
    }
    return "cancelled";
  },
  async obey() {
    await say(`${process.pid} ${process.pid}.`);
    while (!cancelled) await sleep(5);
    return "cancelled";
  },
  async deaf() {
    process.on("SIGTERM", () => {});
    const child = spawn("sh", ["-c", "trap '' TERM; sleep 60"]);
    await say(`${process.pid} ${child.pid}.`);
    await sleep(60_000);
  },
  async tool() {
    await say("Let me look.");
    await useTool("pending", { title: "Read\n/etc/motd", kind: "read", rawInput: { path: "/etc/motd" } });
    const options = ["allow_always", "allow_once", "reject_always", "reject_once"].map((kind) => {
      return { optionId: kind, name: kind, kind };
    });
    const { result } = await ask("session/request_permission", {
      sessionId,
      toolCall: { toolCallId: "call-1" },
      options,
    });
    const isAllowed = result.outcome.optionId === "allow_once";
    const content = [{ type: "content", content: { type: "text", text: "Welcome." } }];
    await useTool(isAllowed ? "completed" : "failed", { content });
    await say(`It was ${result.outcome.optionId}.`);
  },
  async surprise() {
    const toolCall = { toolCallId: "call-2", title: "Push" };
    const options = [{ optionId: "yes", name: "Yes", kind: "allow_once" }];
    const { result } = await ask("session/request_permission", { sessionId, toolCall, options });
    return result.outcome.outcome === "cancelled" ? "cancelled" : "end_turn";
  },
  async work() {
    await useTool("pending", { title: "Build" });
    await sleep(400);
    await useTool("completed");
    await say("built");
  },
  async unasked() {
    const { error } = await ask("fs/read_text_file", { sessionId, path: "/etc/passwd" });
    const { error: unknown } = await ask("made/up", {});
    await send({ id: 4711, result: {} });
    await send({ method: "made/up", params: {} });
    await send({
      method: "session/update",
      params: { sessionId: "another", update: { sessionUpdate: "agent_message_chunk" } },
    });
    await update({ sessionUpdate: "made_up" });
    await update({ sessionUpdate: "agent_message_chunk", content: { type: "image", data: "", mimeType: "image/png" } });
    await update({ sessionUpdate: "agent_thought_chunk", content: { type: "text", text: "hm" } });
    await update({ sessionUpdate: "plan", entries: [] });
    await say(`${error.code} ${unknown.code}`);
  },
  async flood() {
    for (let n = 0; n < 8_000; n++) await say("x".repeat(1_000));
    process.stderr.write("all of it\n");
  },
  async paragraphs() {
    await say("one", "a");
    await say(" more", "a");
    await say("two", "b");
  },
  usage: () => say("counted"),
  garbage: () => write("<html>secret</html>\n"),
  half: async () => {
    await say("half");
    await write('{"jsonrpc":"2.0","method":"session/upd');
    process.exit(7);
  },
  values: async () => {
    process.stdout.write(`{"jsonrpc":"2.0","method":"x","params":[${"0,".repeat(100_000)}0]}\n`);
    await new Promise(() => {});
  },
  huge: async () => {
    for (;;) await write("x".repeat(1_000_000));
  },
  exit: () => {
    console.error("no disk");
    process.exit(7);
  },
  said: async () => {
    await say("so far");
    process.exit(7);
  },
  did: async () => {
    await useTool("pending", { title: "Delete" });
    process.exit(7);
  },
  beg: async () => {
    for (let n = 0; n < 1_000; n++) void ask("made/up", {});
    await sleep(60_000);
  },
};

async function prompt(id, text) {
  told.prompt = text;
  cancelled = false;
  const [, what = "echo", more] = /do: (\w+)(?: (\w+))?\s*(?:<\/outside-\w+>)?$/.exec(text) ?? [];
  if (what === "refuse") {
    return await send({
      id,
      error: {
        code: Number(more ?? 0) || -32603,
        message: "Internal error:\n model overloaded",
        data: { key: "sk-secret-key-1234567890" },
      },
    });
  }
  if (what === "stop") return await send({ id, result: { stopReason: more } });
  let stopReason;
  if (DEEDS[what]) stopReason = await DEEDS[what]();
  else if (text.startsWith("Summarise") || text.includes("\n\nSummarise")) await say("They talked.");
  else {
    await say(text.slice(0, 5));
    await say(text.slice(5));
  }
  const usage = what === "usage" ? { totalTokens: 9, inputTokens: 5, outputTokens: 4, cachedReadTokens: 2 } : undefined;
  await send({ id, result: { stopReason: stopReason ?? "end_turn", usage } });
  if (what === "late") await say("too late");
  if (what === "bye") process.exit(0);
}

const modelOption = {
  ...{ id: "model", name: "Model", category: "model", type: "select", currentValue: "small" },
  options: [
    { value: "small", name: "Small" },
    { value: "large", name: "Large" },
  ],
};

const HEARD = {
  initialize: (id, params) => {
    told.initialize = params;
    if (begin === "mute") return;
    void send({ id, result: { protocolVersion: begin === "old" ? 0 : 1, agentCapabilities: {}, authMethods: [] } });
  },
  "session/new": (id, params) => {
    told.session = params;
    if (begin === "login") return void send({ id, error: { code: -32000, message: "Authentication required" } });
    void send({ id, result: { sessionId, ...(begin === "models" ? { configOptions: [modelOption] } : {}) } });
  },
  "session/set_config_option": (id, params) => {
    model = params.value;
    void send({ id, result: { configOptions: [{ ...modelOption, currentValue: model }] } });
  },
  "session/prompt": (id, params) => {
    told.meta = params._meta;
    void prompt(id, params.prompt.map(({ text }) => text).join(""));
  },
  "session/cancel": () => {
    cancelled = true;
    told.cancels++;
    console.error("cancelled");
  },
};

if (begin === "exit") process.exit(1);
if (begin === "banner") console.log("Welcome to the agent!");
let read = "";
process.stdin.setEncoding("utf8").on("data", (text) => {
  const lines = (read + text).split("\n");
  read = lines.pop();
  for (const line of lines) {
    const { id, method, params, ...answer } = JSON.parse(line);
    if (method === undefined) waiting.get(id)?.(answer);
    else HEARD[method]?.(id, params);
  }
});
