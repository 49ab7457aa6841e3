import type { SessionUpdate } from "@agentclientprotocol/sdk";
import { cleanSentence } from "#kit/clean-words.ts";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import type { Chunk } from "../backend.ts";
import { createJoiner } from "../characters.ts";

/** A reply whose reader is so far behind makes the agent wait. */
const MOST_WAITING = 1024 * 1024;
/** Tools that one turn may have at work, for all that we note of them. */
const MOST_TOOLS = 1_000;

/** Whoever reads it on the timeline can do something about it. */
const NOT_ALLOWED = "it was not allowed: acp.permissions of the agent is deny";

type Tool = { name: string; began: number; isRefused: boolean };

/** The reply of an agent to one prompt, as its updates tell it. */
export const createReply = (clock: Clock, aliveMs: number) => {
  const waiting: Chunk[] = [];
  const tools = new Map<string, Tool>();
  const whole = createJoiner();
  let weight = 0;
  let characters = 0;
  let outcome: { error?: unknown } | undefined;
  let wake = () => {};
  let makeRoom: (() => void) | undefined;
  let room: Promise<void> | undefined;
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
    // What was said before a tool was used, or as another message, is a paragraph of its own.
    if (characters > 0 && (isApart || messageId !== message) && !last.endsWith("\n")) said = `\n\n${said}`;
    isApart = false;
    message = messageId;
    last = said;
    characters += said.length;
    weight += said.length;
    const newest = waiting.at(-1);
    if (newest && "text" in newest) waiting[waiting.length - 1] = { text: newest.text + said };
    else push({ text: said });
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
    makeRoom?.();
    wake();
  };
  const isBehind = () => weight > MOST_WAITING || waiting.length > MOST_TOOLS;

  return {
    /** Takes an update of the session; a promise where the reader has to come after first. */
    take(update: SessionUpdate): Promise<void> | undefined {
      if (outcome || isSealed) return undefined;
      if (update.sessionUpdate === "agent_message_chunk") {
        const { content, messageId } = update;
        if (content?.type === "text" && typeof content.text === "string") say(content.text, messageId ?? undefined);
        else alive();
      } else if (update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update") use(update);
      else alive();
      if (isBehind()) room ??= new Promise((resolve) => (makeRoom = resolve));
      return room;
    },
    /** It was not allowed to do this, of which it need not have told before. */
    refuse({ toolCallId, title }: Pick<ToolUpdate, "toolCallId" | "title">): void {
      wasRefused = true;
      const id = String(toolCallId);
      if (!tools.has(id)) use({ sessionUpdate: "tool_call_update", toolCallId: id, title });
      const tool = tools.get(id);
      if (tool) tool.isRefused = true;
    },
    /** Whether there was anything that it was not allowed to do. */
    wasRefused: () => wasRefused,
    /** The agent has said all of it. */
    seal(): void {
      isSealed = true;
    },
    end(): void {
      for (const tool of tools.values()) if (tool.isRefused) note(tool, false);
      outcome ??= {};
      wake();
    },
    /** Ends it at once: what was not read yet is thrown away. */
    fail,
    /** Fails it, unless the agent had said all of it before. */
    lose({ message, retryable, cause }: BackendError): void {
      // What was said or done would be said or done again.
      const isWorthIt = retryable && !acted && characters === 0;
      if (!isSealed) fail(new BackendError(message, { retryable: isWorthIt, cause }));
    },
    characters: () => characters,
    async *chunks(): AsyncGenerator<Chunk, void> {
      for (;;) {
        for (let next = waiting.shift(); next; next = waiting.shift()) {
          if ("text" in next) weight -= next.text.length;
          yield next;
        }
        makeRoom?.();
        room = undefined;
        makeRoom = undefined;
        if (outcome && "error" in outcome) throw outcome.error;
        if (waiting.length > 0) continue;
        if (outcome) return;
        const stop = tools.size > 0 ? clock.after(aliveMs, alive) : undefined;
        await new Promise<void>((resolve) => (wake = resolve));
        stop?.();
      }
    },
  };
};

export type Reply = ReturnType<typeof createReply>;

type ToolUpdate = Extract<SessionUpdate, { sessionUpdate: "tool_call" | "tool_call_update" }>;

const nameOf = (said: unknown): string => (typeof said === "string" && cleanSentence(said, 80)) || "a tool";
