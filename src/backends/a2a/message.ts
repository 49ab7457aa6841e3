import { createHash } from "node:crypto";
import type { Message, Part } from "@a2a-js/sdk";
import type { BackendTurn } from "../backend.ts";
import { textsFor } from "../conversation.ts";

const ROLE_USER = 1;

/**
 * The context of a session at the agent. It is made of the session's id and of the headers that identify us to the agent. It is
 * the same after a restart and on every gateway, and nobody can guess it without those headers.
 */
export function contextOf(url: string, headers: Readonly<Record<string, string>>, turn: BackendTurn): string {
  const of = JSON.stringify([url, Object.entries(headers).sort(), turn.agent, turn.sessionId]);
  const digits = createHash("sha256").update(of).digest("hex");
  return [
    digits.slice(0, 8),
    digits.slice(8, 12),
    `8${digits.slice(13, 16)}`,
    `a${digits.slice(17, 20)}`,
    digits.slice(20, 32),
  ].join("-");
}

/** A turn as a message. The agent stores the conversation itself, except for the messages from before the session began. */
export function messageOf(turn: BackendTurn, contextId: string, taskId: string | undefined): Message {
  return {
    messageId: turn.turnId,
    contextId,
    taskId: taskId ?? "",
    role: ROLE_USER,
    parts: textsFor(turn, turn.earlier ?? []).map(textPart),
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  };
}

function textPart(value: string): Part {
  return {
    content: { $case: "text", value },
    metadata: undefined,
    filename: "",
    mediaType: "text/plain",
  };
}

export function textOf(parts: readonly Part[] | undefined): string {
  return (parts ?? []).map(({ content }) => (content?.$case === "text" ? content.value : "")).join("");
}
