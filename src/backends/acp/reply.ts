import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { cleanSentence } from "#kit/clean-words.ts";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import type { Chunk } from "../backend.ts";
import { createJoiner } from "../characters.ts";

/** The number of tool calls that one turn may have at once. */
const MOST_TOOLS = 1_000;

/** A reason for the timeline that names the setting to change. */
const NOT_ALLOWED = "it was not allowed: acp.permissions of the agent is deny";

type Tool = { name: string; began: number; isRefused: boolean };

/** The reply of an agent to one prompt, built from its updates. */
export function createReply(clock: Clock, aliveMs: number) {
  /** The chunks of one update that the reader has not taken yet. */
  const waiting: Chunk[] = [];
  const tools = new Map<string, Tool>();
  const whole = createJoiner();
  let characters = 0;
  let outcome: { error?: unknown } | undefined;
  let wake = () => {};
  let tellTaken = () => {};
  let message: string | undefined;
  let last = "";
  let isApart = false;
  let acted = false;
  let isSealed = false;
  let wasRefused = false;

  const push = (chunk: Chunk): void => {
    waiting.push(chunk);
    wake();
  };
  const alive = (): void => {
    const newest = waiting.at(-1);
    if (!newest || !("alive" in newest)) push({ alive: true });
  };
  const say = (cut: string, messageId: string | undefined): void => {
    let said = whole(cut);
    if (said === "") {
      alive();
      return;
    }
    // Text after a tool call, or with another message id, starts a new paragraph.
    if (characters > 0 && (isApart || messageId !== message) && !last.endsWith("\n")) said = `\n\n${said}`;
    isApart = false;
    message = messageId;
    last = said;
    characters += said.length;
    push({ text: said });
  };
  const note = (tool: Tool, ok: boolean): void => {
    const ms = Math.round(clock.monotonic() - tool.began);
    const reason = tool.isRefused ? NOT_ALLOWED : "the tool failed";
    push({ note: { name: "tool.called", detail: { tool: tool.name, ok, ms, ...(ok ? {} : { reason }) } } });
  };
  const use = ({ toolCallId, title, name, status }: ToolUpdate): void => {
    isApart = true;
    acted = true;
    const id = String(toolCallId);
    const known = tools.get(id);
    const tool = known ?? { name: nameOf(name ?? title), began: clock.monotonic(), isRefused: false };
    const isOver = status === "completed" || status === "failed";
    if (isOver) {
      tools.delete(id);
      note(tool, status === "completed");
    } else {
      if (tools.size < MOST_TOOLS) tools.set(id, tool);
      alive();
    }
  };
  const fail = (error: unknown): void => {
    if (outcome && "error" in outcome) return;
    outcome = { error };
    waiting.length = 0;
    tellTaken();
    wake();
  };

  return {
    /** Takes an update of the session. Returns a promise if the reader must take it before the next one comes. */
    take(update: SessionUpdate): Promise<void> | undefined {
      if (outcome || isSealed) return undefined;
      if (update.sessionUpdate === "agent_message_chunk") {
        const { content, messageId } = update;
        if (content?.type === "text" && typeof content.text === "string") say(content.text, messageId ?? undefined);
        else alive();
      } else if (update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update") use(update);
      else alive();
      return waiting.length > 0 ? new Promise((resolve) => (tellTaken = resolve)) : undefined;
    },
    /** The agent was denied this tool call, which it need not have announced before. */
    refuse({ toolCallId, title }: Pick<ToolUpdate, "toolCallId" | "title">): void {
      wasRefused = true;
      const id = String(toolCallId);
      if (!tools.has(id)) use({ sessionUpdate: "tool_call_update", toolCallId: id, title });
      const tool = tools.get(id);
      if (tool) tool.isRefused = true;
    },
    /** True if the agent was denied anything. */
    wasRefused: () => wasRefused,
    /** The reply of the agent is complete. */
    seal(): void {
      isSealed = true;
    },
    end(): void {
      for (const tool of tools.values()) if (tool.isRefused) note(tool, false);
      outcome ??= {};
      wake();
    },
    /** Ends it at once: unread text is thrown away. */
    fail,
    /** Fails it, unless the reply was complete before. */
    lose({ message, retryable, cause }: BackendError): void {
      // Another try would repeat the text and the actions.
      const isWorthIt = retryable && !acted && characters === 0;
      if (!isSealed) fail(new BackendError(message, { retryable: isWorthIt, cause }));
    },
    characters: () => characters,
    async *chunks(): AsyncGenerator<Chunk, void> {
      for (;;) {
        for (let next = waiting.shift(); next; next = waiting.shift()) yield next;
        tellTaken();
        if (outcome && "error" in outcome) throw outcome.error;
        if (waiting.length > 0) continue;
        if (outcome) return;
        const stop = tools.size > 0 ? clock.after(aliveMs, alive) : undefined;
        await new Promise<void>((resolve) => (wake = resolve));
        stop?.();
      }
    },
  };
}

export type Reply = ReturnType<typeof createReply>;

type ToolUpdate = Extract<SessionUpdate, { sessionUpdate: "tool_call" | "tool_call_update" }>;

function nameOf(said: unknown): string {
  return (typeof said === "string" && cleanSentence(said, 80)) || "a tool";
}
