import type { BackendTurn, Used } from "#backends/backend.ts";
import { type Agent, labelOfModel } from "#core/agents/agents.ts";
import type { CoreParts } from "#core/parts.ts";
import { earlierOf, withoutEarlier } from "#core/sessions/earlier-messages.ts";
import { readHistory } from "#core/sessions/history.ts";
import { skillTools } from "#core/skills/skill-tools.ts";
import { hasSkill } from "#core/skills/skills.ts";
import { keepTrying } from "#core/worker.ts";
import { GatewayError } from "#kit/errors.ts";
import { abortSignalOf, type Stop, type StopSignal } from "#kit/stop-signal.ts";
import { usageOf } from "#kit/usages.ts";
import { IN_STRETCHES_FROM } from "#kit/utf8.ts";
import { yieldToOthers } from "#kit/yield.ts";
import type { ClaimedTurn, Reserve, Spend, Turn, TurnEnd, UsageRow } from "#store/store.ts";
import { type Tool, ToolError } from "#tools/tool.ts";
import { reportRefusal } from "./budget-refusals.ts";
import type { LiveReply } from "./live-replies.ts";
import type { RetryBudget } from "./retry-budget.ts";
import { type Note, type Outcome, type RunListener, runTurn } from "./run-turn.ts";
import { ToolCalls } from "./tool-calls.ts";
import type { TurnWatch, TurnWatches } from "./turn-watch.ts";
import type { TurnsPerMinute } from "./turns-per-minute.ts";

export const MAX_ATTEMPTS = 3;
const FIRST_BACKOFF_MS = 500;
/** The interval at which a step asks again for room in a budget that other turns have reserved. */
const ROOM_POLL_MS = 500;

export type AttemptParts = CoreParts & {
  retries: RetryBudget;
  watches: TurnWatches;
  turnsPerMinute: TurnsPerMinute;
  /** Called with the agent of a turn, in the tick in which the end of the turn is sent to the store. */
  onTurnEnd: (agent: string) => void;
};

/** The end of an attempt. `retryInMs` is the delay before the turn is retried; undefined if the turn has ended. */
type AttemptEnd = { outcome: Outcome; retryInMs: number | undefined; model: string | undefined; usage: UsageRow };

/** One attempt at a claimed turn: the input of its backend, and the listener of the run. */
export class Attempt implements BackendTurn, RunListener {
  readonly watch: TurnWatch;
  readonly written: LiveReply;
  readonly #parts: AttemptParts;
  readonly #claimed: ClaimedTurn;
  readonly #agent: Agent;
  readonly #stop: Stop;
  readonly #began: number;
  readonly #toolCalls = new ToolCalls();

  constructor(parts: AttemptParts, claimed: ClaimedTurn, agent: Agent, stop: Stop) {
    const { turnId, sessionId } = claimed.turn;
    this.#parts = parts;
    this.#claimed = claimed;
    this.#agent = agent;
    this.#stop = stop;
    this.#began = parts.clock.monotonic();
    this.written = parts.live.open(turnId, sessionId, claimed.replyMessageId, claimed.replySeq);
    this.watch = parts.watches.start(agent, claimed.spentMs, stop);
  }

  /** Runs the turn, then stores its end or returns it to the queue. Never rejects. */
  async run(): Promise<void> {
    try {
      // Storing a large message blocked the event loop for a while, and its reply may too: other calls run in between.
      if (this.#claimed.message.text.length > IN_STRETCHES_FROM) await yieldToOthers();
      this.#reportStart();
      const end = this.#endOf(await runTurn(this.#agent.backend, this, this.#stop, this));
      const isStored = keepTrying(this.#parts, "endTurn", () => this.#store(end));
      if (end.retryInMs === undefined) this.#parts.onTurnEnd(this.agent);
      const isOurs = await isStored;
      if (isOurs) this.#reportEnd(end);
      else await this.#reportLost();
    } catch (error) {
      reportTrouble(this.#parts, this.#claimed.turn, error);
    } finally {
      this.watch.stop();
      this.#parts.live.close(this.written);
    }
  }

  get turnId(): string {
    return this.#claimed.turn.turnId;
  }

  get sessionId(): string {
    return this.#claimed.turn.sessionId;
  }

  get agent(): string {
    return this.#claimed.turn.agent;
  }

  get attempt(): number {
    return this.#claimed.turn.attempt;
  }

  get model(): string | undefined {
    return this.#claimed.turn.model ?? this.#agent.model;
  }

  get instructions(): string | undefined {
    return this.#agent.instructions;
  }

  get skills(): BackendTurn["skills"] {
    return this.#parts.skills.bodies(this.#claimed.turn.skillIds);
  }

  get message(): BackendTurn["message"] {
    return withoutEarlier(this.#claimed.message);
  }

  get hops(): number {
    return this.#claimed.hops;
  }

  get earlier(): BackendTurn["earlier"] {
    return earlierOf(this.#claimed.message);
  }

  history(): ReturnType<BackendTurn["history"]> {
    return readHistory(this.#parts.store, this.#claimed);
  }

  offered(): ReturnType<BackendTurn["offered"]> {
    const { skillIds } = this.#claimed.turn;
    const isOffered = (skillId: string) => !skillIds.includes(skillId) && hasSkill(this.#agent, skillId);
    return this.#parts.skills.list().filter(({ skillId }) => isOffered(skillId));
  }

  get requireBudget(): BackendTurn["requireBudget"] {
    return this.#claimed.hasBudget ? (used, promptTokens) => this.#requireBudget(used, promptTokens) : undefined;
  }

  mayRetry(): boolean {
    return this.#parts.retries.take(this.agent);
  }

  async tools(signal: StopSignal): Promise<readonly Tool[]> {
    const { toolSource } = this.#agent;
    const own = skillTools(this.#parts.skills, this.#agent);
    const external = toolSource && (await this.watch.pause(toolSource.tools(abortSignalOf(signal), this.hops)));
    for (const { server, reason } of external?.missing ?? [])
      this.note({ name: "tool.unavailable", detail: { server, reason } });
    return [...own, ...(external?.tools ?? [])].map((tool) => this.#withNotes(tool));
  }

  text(text: string): void {
    this.#parts.live.append(this.written, text);
  }

  /** Adds a step to the turn's timeline. A failure to store it does not affect the turn. */
  note({ name, detail }: Note): void {
    if (name === "usage.unknown") this.#parts.events.usageUnknown({ agent: this.#agent.name });
    const { store, clock, hide, settings } = this.#parts;
    const isContentStored = settings().isToolContentStored;
    const shown = name === "tool.called" ? this.#toolCalls.add(detail, clock.now(), { isContentStored, hide }) : detail;
    const { deliveryId } = this.#claimed.turn;
    if (deliveryId === undefined) return;
    store.addDeliveryStep(deliveryId, { at: clock.now(), name, detail: JSON.stringify(shown) }).catch(() => {});
  }

  async #requireBudget(used: Used, promptTokens: number): Promise<void> {
    const { store, settings } = this.#parts;
    const { input, output, more } = usageOf(used);
    const order = {
      used: { tokens: input + output, cost: more?.cost ?? 0 },
      next: nextSpend(settings().policy.reserves[this.agent], promptTokens),
    };
    const extend = () => store.extendBudget(this.#claimed.claim, order);
    for (;;) {
      const refused = await this.watch.pause(keepTrying(this.#parts, "extendBudget", extend));
      if (!refused) return;
      const { budget: name, resetsAt, detail, isSpent } = refused;
      if (!isSpent) {
        await this.watch.pause(this.#wait(ROOM_POLL_MS));
        continue;
      }
      reportRefusal(this.#parts, name);
      throw new GatewayError("budget-exceeded", detail, { budget: { name, resetsAt } });
    }
  }

  /** Rejects if the turn is stopped. */
  #wait(ms: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = () => {
        stopTimer();
        this.#stop.removeEventListener("abort", end);
        if (this.#stop.aborted) reject(this.#stop.reason);
        else resolve();
      };
      const stopTimer = this.#parts.clock.after(ms, end);
      this.#stop.addEventListener("abort", end);
      if (this.#stop.aborted) end();
    });
  }

  /** Wraps a tool so that each call adds a step to the timeline. The watch is paused during a call, because it would count as silence. */
  #withNotes(tool: Tool): Tool {
    const { clock } = this.#parts;
    return {
      ...tool,
      call: async (args, signal) => {
        const began = clock.monotonic();
        const noteCall = (detail: object) => {
          const ms = Math.round(clock.monotonic() - began);
          this.note({ name: "tool.called", detail: { tool: tool.name, ms, ...detail, arguments: args } });
        };
        try {
          const answer = await this.watch.pause(tool.call(args, signal));
          noteCall({ ok: true, characters: answer.length, result: answer });
          return answer;
        } catch (error) {
          noteCall({ ok: false, reason: error instanceof ToolError ? error.message : "the tool failed" });
          throw error;
        }
      },
    };
  }

  #reportStart(): void {
    const { turn, groupedMs = 0 } = this.#claimed;
    const { turnId, agent, attempt, createdAt } = turn;
    const queuedMs = this.#parts.clock.now() - createdAt - groupedMs;
    if (attempt === 1) this.#parts.turnsPerMinute.count(agent);
    this.#parts.events.turnStarted({ turnId, agent, attempt, queuedMs });
  }

  /** Decides whether the turn has ended or is retried, and reports the usage of the attempt. */
  #endOf(outcome: Outcome): AttemptEnd {
    this.watch.stop();
    const { clock, events, countedModels } = this.#parts;
    const { turnId, model: requested } = this.#claimed.turn;
    const agent = this.#agent;
    const ms = clock.monotonic() - this.#began;
    const { thrown, usage: used } = outcome;
    if (thrown !== undefined) events.backendFailed({ turnId, agent: agent.name, error: thrown });
    const answered = outcome.model ?? requested ?? agent.model;
    const usage: UsageRow = { model: countedModels(agent, answered), usage: used, latencyMs: ms };
    events.attemptUsed({ agent: agent.name, model: labelOfModel(agent, usage.model), usage: used });
    const model = answered === requested ? undefined : answered;
    return { outcome, retryInMs: this.#retryAfter(outcome, ms), model, usage };
  }

  /** Returns false if another gateway has claimed the turn, or if its session was deleted. */
  #store({ outcome, retryInMs, model, usage }: AttemptEnd): Promise<boolean> {
    const { store, clock } = this.#parts;
    const { claim } = this.#claimed;
    const { reply, error } = outcome;
    const toolCalls = this.#toolCalls.list;
    return retryInMs === undefined
      ? store.endTurn(claim, { now: clock.now(), status: statusOf(outcome), reply, toolCalls, error, model, usage })
      : store.releaseTurn(claim, { now: clock.now(), delayMs: retryInMs, usage, replyBytes: replyBytesOf(outcome) });
  }

  #reportEnd({ outcome, retryInMs, usage }: AttemptEnd): void {
    const { events } = this.#parts;
    const { turnId, agent, attempt } = this.#claimed.turn;
    if (retryInMs === undefined) {
      events.turnEnded({ turnId, agent, outcome: statusOf(outcome), attempt, ms: usage.latencyMs });
      return;
    }
    const delayMs = Math.round(retryInMs);
    events.turnRetried({ turnId, agent, attempt, delayMs });
    // The journal does not store why an attempt was returned to the queue; the timeline does.
    const reason = outcome.status === "handed-back" ? "the gateway stopped" : outcome.error?.detail;
    this.note({ name: "turn.returned", detail: { attempt, reason, delay_ms: delayMs } });
  }

  /** Reports a lost turn, if its lease ended and another gateway runs it. A deleted session is not reported. */
  async #reportLost(): Promise<void> {
    const { turnId, agent, attempt } = this;
    const turn = await this.#parts.store.getTurn(turnId);
    if (turn && (turn.attempt > attempt || turn.status === "queued"))
      this.#parts.events.turnLost({ turnId, agent, attempt });
  }

  /** The delay before the turn is retried; undefined if the turn has ended. */
  #retryAfter(outcome: Outcome, ms: number): number | undefined {
    const { retries } = this.#parts;
    const leftMs = this.#agent.deadlineMs - this.#claimed.spentMs - ms;
    const delayMs = backoffOf(outcome, this.attempt, leftMs);
    if (outcome.status === "retry" && delayMs !== undefined && !retries.take(this.agent)) return undefined;
    if (delayMs === undefined) retries.earn(this.agent);
    return delayMs;
  }
}

/** The most that a step with such a prompt may use. */
function nextSpend(reserve: Reserve | undefined, promptTokens: number): Spend {
  const { outputTokens = 0, inputPrice = 0, outputPrice = 0 } = reserve ?? {};
  const cost = Math.ceil(promptTokens * inputPrice + outputTokens * outputPrice);
  return { tokens: promptTokens + outputTokens, cost };
}

/** Undefined for an attempt that the backend has probably not worked on. */
function replyBytesOf({ status, reply, error }: Outcome): number | undefined {
  return status === "handed-back" || error?.name === "turn-timeout" ? Buffer.byteLength(reply) : undefined;
}

function statusOf({ status }: Outcome): TurnEnd["status"] {
  return status === "retry" || status === "handed-back" ? "failed" : status;
}

/** Errors that the log reports as `store.failed`. */
const STORE_TROUBLE: ReadonlySet<string> = new Set(["store-unavailable", "store-full"]);

/** Reports that the end of an attempt could not be stored. The turn runs again when its lease ends; the store may be available then. */
export function reportTrouble(parts: CoreParts, turn: Turn, error: unknown): void {
  const { name } = GatewayError.from(error);
  if (STORE_TROUBLE.has(name)) parts.events.storeFailed({ operation: "runTurn", error });
  else parts.events.unexpectedError({ error, where: "runner" });
  // Waiters keep waiting for an unavailable store, which may recover. A full store needs an operator, so they are released.
  if (name === "store-full") parts.streams.turnNotStored(turn);
}

/** The delay before the next attempt. Undefined after the last attempt, or if the backend requires a longer delay than the time that the turn has left. */
function backoffOf({ status, retryAfterMs = 0 }: Outcome, attempt: number, leftMs: number): number | undefined {
  if (status === "handed-back") return 0;
  if (status !== "retry" || attempt >= MAX_ATTEMPTS || retryAfterMs > leftMs || leftMs <= 0) return undefined;
  const backoff = FIRST_BACKOFF_MS * 2 ** (attempt - 1);
  return Math.max(retryAfterMs, backoff * (0.5 + Math.random() / 2));
}
