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
import { Reply } from "./reply.ts";

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
  const { agent, clock, events } = settings;
  const say = (said: { line: string }) => events.programSaid({ program: `agents.${agent}`, ...said });
  const program = await startProgram(settings, { clock, say }).catch((error: unknown) => {
    throw notStarted(error);
  });
  const started = new AgentProcess(settings, program);
  try {
    await started.open(signal);
    return started;
  } catch (error) {
    void started.stop();
    throw error instanceof BackendError || signal.aborted ? error : asRefusal(error);
  }
}

/** An agent's program with one session, and its state. It handles one prompt at a time. */
export class AgentProcess {
  /** The text of the last prompt; undefined before the first one. */
  lastAsked: string | undefined;
  isAlive = true;
  /** Resolves when the program has ended its cancelled prompt, or has exited. */
  settled: Promise<void> = Promise.resolve();
  readonly exited: Promise<void>;
  readonly #settings: AgentSettings;
  readonly #program: RunningProgram;
  readonly #peer: ReturnType<typeof openPeer>;
  /** Resolves with the reason when the program can no longer be reached. */
  readonly #broken: Promise<BackendError>;
  #chooseModel: ReturnType<typeof createModelChoice> | undefined;
  #session: string | undefined;
  #reply: Reply | undefined;

  constructor(settings: AgentSettings, program: RunningProgram) {
    const { clock } = settings;
    this.#settings = settings;
    this.#program = program;
    this.exited = program.exited;
    this.#peer = openPeer(program, clock, {
      onUpdate: (params) => this.#update(params),
      onPermission: (params) => this.#permit(params),
    });
    this.#broken = this.#peer.closed.then(async (failure) => {
      this.isAlive = false;
      const error = failure ?? endedBadly(await endOf(program, clock), program, true);
      this.#reply?.lose(error);
      return error;
    });
    void this.#broken.then(() => this.stop());
  }

  /** Agrees on the protocol and opens the session. */
  async open(signal: AbortSignal): Promise<void> {
    const { cwd, version } = this.#settings;
    const hello: InitializeRequest = {
      protocolVersion: PROTOCOL_VERSION,
      // It has its own files and shells; the gateway does not watch them.
      clientCapabilities: { fs: { readTextFile: false, writeTextFile: false }, terminal: false },
      clientInfo: { name: "agent-gateway", version },
    };
    const { protocolVersion } = Object(await this.#ask("initialize", hello, signal)) as { protocolVersion?: unknown };
    if (protocolVersion !== PROTOCOL_VERSION)
      throw new BackendError(
        `the agent's program does not support version ${PROTOCOL_VERSION} of the Agent Client Protocol`,
      );
    const answer = Object(await this.#ask("session/new", { cwd, mcpServers: [] }, signal));
    const { sessionId, configOptions } = answer as Partial<NewSessionResponse>;
    if (typeof sessionId !== "string") throw new BackendError("the agent's program did not open a session");
    this.#session = sessionId;
    this.#chooseModel = createModelChoice(configOptions, (configId, value, aborted) =>
      this.#ask("session/set_config_option", { sessionId, configId, value }, aborted),
    );
  }

  async chooseModel(model: string | undefined, signal: AbortSignal): Promise<void> {
    await this.#chooseModel?.(model, signal);
  }

  async *prompt(text: string, hops: number, signal: AbortSignal): AsyncGenerator<Chunk> {
    const { clock, silenceMs } = this.#settings;
    const reply = new Reply(clock, Math.min(ALIVE_MS, silenceMs / 3));
    this.#reply = reply;
    let response: PromptResponse | undefined;
    const prompt: PromptRequest["prompt"] = [{ type: "text", text }];
    const request = { sessionId: this.#session, prompt, _meta: { [HOPS_KEY]: hops } };
    // Messages after the answer belong to no turn.
    const answered = this.#peer
      .request("session/prompt", request, () => reply.seal())
      .then(
        (answer) => {
          response = Object(answer) as PromptResponse;
          reply.end();
        },
        (error: unknown) => reply.fail(asRefusal(error)),
      );
    const onAbort = () => {
      reply.fail(signal.reason);
      if (!response) this.#leave(answered);
    };
    const usage = () => usageOf(response) ?? { input: tokensIn(text.length), output: tokensIn(reply.characters) };
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      for await (const chunk of reply.chunks()) {
        yield chunk;
        if ("text" in chunk) yield { usage: usage() };
      }
      const reason = reasonOf(response, reply.characters > 0, reply.wasRefused);
      if (!usageOf(response)) yield usageUnknown("the agent's program", "an estimate");
      yield { usage: usage() };
      if (reason) throw reason;
    } finally {
      signal.removeEventListener("abort", onAbort);
      if (!response && !signal.aborted) this.#leave(answered);
      reply.fail(undefined);
      if (this.#reply === reply) this.#reply = undefined;
    }
  }

  /** Resolves when all processes of the program have exited. */
  stop(graceMs?: number): Promise<void> {
    this.isAlive = false;
    return this.#program.stop(graceMs);
  }

  #update(params: unknown): Promise<void> | undefined {
    const { sessionId, update } = (params ?? {}) as Partial<SessionNotification>;
    const isOurs = sessionId === this.#session && typeof update === "object" && update !== null;
    return isOurs ? this.#reply?.take(update) : undefined;
  }

  #permit(params: unknown) {
    const { permissions } = this.#settings;
    const request = (params ?? {}) as Partial<RequestPermissionRequest>;
    if (!this.#reply) return { outcome: { outcome: "cancelled" } } as const;
    if (permissions === "deny") this.#reply.refuse(request.toolCall ?? { toolCallId: "" });
    return answerPermission(request, permissions);
  }

  #ask(method: string, params: object, signal: AbortSignal): Promise<unknown> {
    const { clock, connectMs: ms } = this.#settings;
    return within(this.#peer.request(method, params), { broken: this.#broken, signal, clock, ms });
  }

  /** Cancels its prompt, and ends the program if it does not obey. */
  #leave(answered: Promise<unknown>): void {
    if (!this.isAlive) return;
    this.#peer.notify("session/cancel", { sessionId: this.#session });
    const { clock } = this.#settings;
    this.settled = within(answered, { broken: this.#broken, signal: undefined, clock, ms: CANCEL_MS }).then(
      () => {},
      () => this.stop(DEAF_MS),
    );
  }
}

async function endOf(program: RunningProgram, clock: Clock): Promise<ProgramEnd> {
  const forget = clock.after(END_MS, () => void program.stop(0));
  const end = await program.ended;
  forget();
  return end;
}
