import type { Artifact, Message, StreamResponse, Task, TaskStatus } from "@a2a-js/sdk";
import { cleanSentence } from "#kit/clean-words.ts";
import { BackendError } from "#kit/errors.ts";
import type { Used } from "../backend.ts";
import { countsIn } from "../token-counts.ts";
import { WHO } from "./card.ts";
import { textOf } from "./message.ts";

/** The states of a task, by their numbers in the protocol. */
const STATE = { completed: 3, failed: 4, canceled: 5, inputRequired: 6, rejected: 7, authRequired: 8 } as const;

/** A reply, built from the events of its task. */
export class Reply {
  taskId: string | undefined;
  /** The task has ended, or waits for input: no further text follows. */
  isOver = false;
  /** The agent has asked something, and the next message is the answer. */
  isQuestion = false;
  /** The tokens that it used, if the agent reports them. */
  used: Used | undefined;
  readonly #artifacts = new Map<string, string>();
  #length = 0;

  /** The text that an event adds. Throws if the task has failed. */
  take({ payload }: StreamResponse): string {
    if (payload?.$case === "message") return this.#message(payload.value);
    if (payload?.$case === "task") return this.task(payload.value);
    if (payload?.$case === "artifactUpdate") {
      const { taskId, artifact, append, metadata } = payload.value;
      this.#count(metadata, artifact?.metadata);
      this.taskId = taskId || this.taskId;
      return this.#counted(artifact ? this.#artifact(artifact, append) : "");
    }
    if (payload?.$case === "statusUpdate") {
      const { taskId, status, metadata } = payload.value;
      this.#count(metadata);
      this.taskId = taskId || this.taskId;
      return this.#status(status);
    }
    throw new BackendError(`${WHO} sent an event that A2A 1.0 does not have`);
  }

  /** The new text of a task: the part that was not returned before. */
  task({ id, status, artifacts, metadata }: Task): string {
    this.taskId = id || this.taskId;
    this.#count(metadata);
    const text = (artifacts ?? []).map((artifact) => this.#artifact(artifact, false)).join("");
    return this.#counted(text) + this.#status(status);
  }

  #message({ parts, metadata }: Message): string {
    this.#count(metadata);
    this.isOver = true;
    return this.#counted(textOf(parts));
  }

  /** The last report replaces all others. A2A does not define usage: these are the places where agents put it. */
  #count(...told: unknown[]): void {
    for (const metadata of told) {
      const { usage, adk_usage_metadata } = (metadata ?? {}) as Record<string, unknown>;
      this.used = countsIn(usage) ?? countsIn(adk_usage_metadata) ?? this.used;
    }
  }

  #counted(text: string): string {
    this.#length += text.length;
    return text;
  }

  #artifact({ artifactId, parts }: Artifact, append: boolean): string {
    const said = this.#artifacts.get(artifactId);
    const text = textOf(parts);
    if (append) {
      this.#artifacts.set(artifactId, (said ?? "") + text);
      return text;
    }
    this.#artifacts.set(artifactId, text);
    // Sent text cannot be taken back: if the agent repeats a text, only the new part of it is sent.
    if (said !== undefined && text.startsWith(said)) return text.slice(said.length);
    return this.#length > 0 && text !== "" ? `\n\n${text}` : text;
  }

  #status(status: TaskStatus | undefined): string {
    this.#count(status?.message?.metadata);
    const words = textOf(status?.message?.parts);
    const why = cleanSentence(words);
    const because = why === "" ? "" : `: ${why}`;
    switch (status?.state) {
      case STATE.completed:
        this.isOver = true;
        return this.#length === 0 ? this.#counted(words) : "";
      case STATE.inputRequired:
        this.isOver = true;
        this.isQuestion = true;
        if (words === "" && this.#length === 0) throw new BackendError(`${WHO} asks for more input without a question`);
        return this.#counted(this.#length > 0 && words !== "" ? `\n\n${words}` : words);
      case STATE.authRequired:
        throw new BackendError(`${WHO} requires credentials that are not configured${because}`);
      case STATE.failed:
        throw new BackendError(`${WHO} failed${because}`);
      case STATE.rejected:
        throw new BackendError(`${WHO} refuses this message${because}`);
      case STATE.canceled:
        throw new BackendError(`${WHO} cancelled its task${because}`);
      default:
        // A status message reports on the work and is not part of the result.
        return "";
    }
  }
}
