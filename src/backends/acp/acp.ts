import { BackendError } from "#kit/errors.ts";
import { abortSignalOf } from "#kit/stop-signal.ts";
import type { Backend, BackendMessage, BackendTurn, Chunk } from "../backend.ts";
import { textsFor } from "../conversation.ts";
import { summaryOf } from "../summary.ts";
import { summaryDocument } from "../turn-document.ts";
import { type AgentProcess, type AgentSettings, startAgent } from "./agent-process.ts";
import { createProcesses } from "./processes.ts";

export type AcpSettings = AgentSettings & {
  models: readonly string[];
  /** The maximum idle time of a process. */
  idle: number;
  processes: number;
};

/** An ACP agent: a process for each session, which continues between its turns. */
export function createAcpBackend(settings: AcpSettings): Backend {
  const processes = createProcesses(settings, (signal) => startAgent(settings, signal));
  let summaries = 0;

  async function* use(key: string, signal: AbortSignal, ask: (process: AgentProcess) => AsyncGenerator<Chunk>) {
    signal.throwIfAborted();
    const process = await processes.take(key, signal);
    let isGood = false;
    try {
      yield* ask(process);
      isGood = true;
    } finally {
      // After a failure the process may have messages that we do not have. After a cancelled turn it continues if it obeys.
      if (!isGood && !signal.aborted) void process.stop();
      processes.give(key);
    }
  }

  async function* answer(process: AgentProcess, turn: BackendTurn, signal: AbortSignal): AsyncGenerator<Chunk> {
    const { lastAsked } = process;
    const all = await turn.history();
    const history = lastAsked === undefined ? all : missedSince(lastAsked, all);
    await process.chooseModel(turn.model, signal);
    signal.throwIfAborted();
    process.lastAsked = turn.message.text;
    const texts = textsFor(turn, history, { isNew: lastAsked === undefined });
    yield* process.prompt(texts.join("\n\n"), turn.hops + 1, signal);
  }

  return {
    kind: "acp",
    asksOutside: true,
    models: settings.models,
    run: (turn, stop) => {
      const signal = abortSignalOf(stop);
      return use(turn.sessionId, signal, (process) => answer(process, turn, signal));
    },
    async summarise(messages, signal, used) {
      if (messages.length === 0) return "";
      // No session has such an id.
      const key = `\0summary ${++summaries}`;
      async function* ask(process: AgentProcess) {
        yield* process.prompt(summaryPrompt(messages), 1, signal);
        void process.stop();
      }
      const summary = await summaryOf(use(key, signal, ask), used);
      if (summary.trim() === "") throw new BackendError("the agent did not write a summary");
      return summary;
    },
    close: processes.close,
  };
}

function summaryPrompt(messages: readonly BackendMessage[]): string {
  const { text } = summaryDocument("", messages).message;
  const message = { text, outside: false, context: undefined };
  return textsFor({ instructions: undefined, skills: [], message }, messages).join("\n\n");
}

/**
 * The messages that the agent has missed since the message `text`: a turn that another gateway ran, or one that never reached it. Empty if that
 * message is no longer in the history.
 */
function missedSince(text: string, history: readonly BackendMessage[]): readonly BackendMessage[] {
  const at = history.findLastIndex((message) => message.role !== "assistant" && message.text === text);
  if (at < 0) return [];
  const since = history.slice(at + 1);
  return since[0]?.role === "assistant" ? since.slice(1) : since;
}
