import { BackendError } from "#kit/errors.ts";
import { abortSignalOf } from "#kit/stop-signal.ts";
import type { Backend, BackendTurn, Chunk } from "../backend.ts";
import { summaryOf } from "../summary.ts";
import { type AgentProcess, type AgentSettings, startAgent } from "./agent-process.ts";
import { createProcesses } from "./processes.ts";
import { missedSince, promptFor, summaryPrompt } from "./prompt.ts";

export type AcpSettings = AgentSettings & {
  models: readonly string[];
  /** How long a process is kept without a turn. */
  idle: number;
  processes: number;
};

/** An agent that speaks the Agent Client Protocol: a process for each session, kept between its turns. */
export const createAcpBackend = (settings: AcpSettings): Backend => {
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
      // One that failed may remember what we do not. One that was told to leave its turn is kept if it obeys.
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
    yield* process.prompt(promptFor(turn, { isNew: lastAsked === undefined, history }), turn.hops + 1, signal);
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
      if (summary.trim() === "") throw new BackendError("the agent wrote no summary");
      return summary;
    },
    close: processes.close,
  };
};
