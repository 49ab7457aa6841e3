import type {
  InitializeRequest,
  NewSessionResponse,
  PromptRequest,
  PromptResponse,
  RequestPermissionRequest,
  SessionNotification,
} from "@agentclientprotocol/sdk";
import type { Clock } from "#kit/clock.ts";
import { BackendError } from "#kit/errors.ts";
import { HOPS_KEY } from "#kit/hops.ts";
import type { Program } from "#kit/programs/program.ts";
import { type ProgramEnd, type RunningProgram, startProgram } from "#kit/programs/start.ts";
import type { Events } from "#observe/events.ts";
import type { Chunk } from "../backend.ts";
import { endedBadly, notStarted } from "../program-failure.ts";
import { tokensIn, usageUnknown } from "../token-counts.ts";
import { answerPermission, asRefusal, createModelChoice, reasonOf, usageOf, within } from "./answers.ts";
import { openPeer } from "./peer.ts";
import { createReply, type Reply } from "./reply.ts";

export type AgentSettings = Program & {
  agent: string;
  permissions: "deny" | "allow";
  /** The time limit for each step of the start, until it accepts prompts. */
  connectMs: number;
  silenceMs: number;
  version: string;
  clock: Clock;
  events: Pick<Events, "programSaid">;
};

/** An agent's program with one session, and its state. It handles one prompt at a time. */
export type AgentProcess = {
  /** The text of its last prompt; undefined if it is new. */
  lastAsked: string | undefined;
  isAlive(): boolean;
  /** Resolves when it has left its cancelled prompt, or has ended. */
  readonly settled: Promise<void>;
  chooseModel(model: string | undefined, signal: AbortSignal): Promise<void>;
  prompt(text: string, hops: number, signal: AbortSignal): AsyncGenerator<Chunk>;
  /** Resolves when no process of it is left. */
  stop(): Promise<void>;
  readonly exited: Promise<void>;
};

const PROTOCOL_VERSION = 1;
/** The time in which an agent must obey a cancellation. */
const CANCEL_MS = 2_000;
/** The time in which an agent that did not obey must end. */
const DEAF_MS = 300;
/** An agent that works with a tool may be silent: it counts as alive, with a sign of life at this interval. */
const ALIVE_MS = 5_000;
/** The time in which an agent that closed its output must end. */
const END_MS = 500;

/** Starts an agent's program and opens a session in it. */
export async function startAgent(settings: AgentSettings, signal: AbortSignal): Promise<AgentProcess> {
  const { agent, clock, events, cwd, permissions, version } = settings;
  const say = (said: { line: string }) => events.programSaid({ program: `agents.${agent}`, ...said });
  const program = await startProgram(settings, { clock, say }).catch((error: unknown) => {
    throw notStarted(error);
  });
  let reply: Reply | undefined;
  let session: string | undefined;
  let isAlive = true;
  let settled: Promise<void> = Promise.resolve();

  const peer = openPeer(program, clock, {
    onUpdate(params) {
      const { sessionId, update } = (params ?? {}) as Partial<SessionNotification>;
      return sessionId === session && typeof update === "object" && update !== null ? reply?.take(update) : undefined;
    },
    onPermission(params) {
      const request = (params ?? {}) as Partial<RequestPermissionRequest>;
      if (!reply) return { outcome: { outcome: "cancelled" } };
      if (permissions === "deny") reply.refuse(request.toolCall ?? { toolCallId: "" });
      return answerPermission(request, permissions);
    },
  });

  const stop = (graceMs?: number): Promise<void> => {
    isAlive = false;
    return program.stop(graceMs);
  };
  /** Resolves with the reason when the program can no longer be reached. */
  const broken = peer.closed.then(async (failure) => {
    isAlive = false;
    const error = failure ?? endedBadly(await endOf(program, clock), program, true);
    reply?.lose(error);
    return error;
  });
  void broken.then(() => stop());
  const ask = (method: string, params: object, aborted = signal): Promise<unknown> =>
    within(peer.request(method, params), { broken, signal: aborted, clock, ms: settings.connectMs });

  try {
    const hello: InitializeRequest = {
      protocolVersion: PROTOCOL_VERSION,
      // It has its own files and shells; the gateway does not watch them.
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
      clientInfo: { name: "agent-gateway", version },
    };
    const { protocolVersion } = Object(await ask("initialize", hello)) as { protocolVersion?: unknown };
    if (protocolVersion !== PROTOCOL_VERSION)
      throw new BackendError(
        `the agent's program does not speak version ${PROTOCOL_VERSION} of the Agent Client Protocol`,
      );
    const opened = Object(await ask("session/new", { cwd, mcpServers: [] })) as Partial<NewSessionResponse>;
    const { sessionId } = opened;
    if (typeof sessionId !== "string") throw new BackendError("the agent's program opened no session");
    session = sessionId;
    const choose = createModelChoice(opened.configOptions, (configId, value, aborted) =>
      ask("session/set_config_option", { sessionId, configId, value }, aborted),
    );

    /** Cancels its prompt, and ends the program if it does not obey. */
    const leave = (answered: Promise<unknown>): void => {
      if (!isAlive) return;
      peer.notify("session/cancel", { sessionId });
      settled = within(answered, { broken, signal: undefined, clock, ms: CANCEL_MS }).then(
        () => {},
        () => stop(DEAF_MS),
      );
    };

    const prompt = async function* (text: string, hops: number, aborted: AbortSignal): AsyncGenerator<Chunk> {
      const mine = createReply(clock, Math.min(ALIVE_MS, settings.silenceMs / 3));
      reply = mine;
      let response: PromptResponse | undefined;
      const asked: PromptRequest = { sessionId, prompt: [{ type: "text", text }], _meta: { [HOPS_KEY]: hops } };
      // Messages after the answer belong to no turn.
      const answered = peer.request("session/prompt", asked, mine.seal).then(
        (answer) => {
          response = Object(answer) as PromptResponse;
          mine.end();
        },
        (error: unknown) => mine.fail(asRefusal(error)),
      );
      const onAbort = () => {
        mine.fail(aborted.reason);
        if (!response) leave(answered);
      };
      const usage = () => usageOf(response) ?? { input: tokensIn(text.length), output: tokensIn(mine.characters()) };
      aborted.addEventListener("abort", onAbort, { once: true });
      if (aborted.aborted) onAbort();
      try {
        for await (const chunk of mine.chunks()) {
          yield chunk;
          if ("text" in chunk) yield { usage: usage() };
        }
        const reason = reasonOf(response, mine.characters() > 0, mine.wasRefused());
        if (!usageOf(response)) yield usageUnknown("the agent's program", "an estimate");
        yield { usage: usage() };
        if (reason) throw reason;
      } finally {
        aborted.removeEventListener("abort", onAbort);
        if (!response && !aborted.aborted) leave(answered);
        mine.fail(undefined);
        if (reply === mine) reply = undefined;
      }
    };
    return {
      lastAsked: undefined,
      isAlive: () => isAlive,
      get settled() {
        return settled;
      },
      chooseModel: choose,
      prompt,
      stop: () => stop(),
      exited: program.exited,
    };
  } catch (error) {
    void stop();
    throw error instanceof BackendError || signal.aborted ? error : asRefusal(error);
  }
}

async function endOf(program: RunningProgram, clock: Clock): Promise<ProgramEnd> {
  const forget = clock.after(END_MS, () => void program.stop(0));
  const end = await program.ended;
  forget();
  return end;
}
