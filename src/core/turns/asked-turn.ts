import type { BackendTurn } from "#backends/backend.ts";
import type { Agent } from "#core/agents/agents.ts";
import { earlierOf, readHistory, withoutEarlier } from "#core/sessions/history.ts";
import { skillTools } from "#core/skills/skill-tools.ts";
import { hasSkill, type Skills } from "#core/skills/skills.ts";
import type { Clock } from "#kit/clock.ts";
import { abortSignalOf, type StopSignal } from "#kit/stop-signal.ts";
import type { ClaimedTurn, Store } from "#store/store.ts";
import { type Tool, ToolError } from "#tools/tool.ts";
import type { RetryBudget } from "./attempt.ts";
import type { Note } from "./run-turn.ts";
import type { TurnWatch } from "./turn-watch.ts";

type AskedParts = { store: Store; skills: Skills; clock: Clock; retries: RetryBudget };

/** A turn as its backend gets it. */
export class AskedTurn implements BackendTurn {
  readonly turnId: string;
  readonly sessionId: string;
  readonly agent: string;
  readonly attempt: number;
  readonly model: string | undefined;
  readonly instructions: string | undefined;
  readonly skills: BackendTurn["skills"];
  readonly message: BackendTurn["message"];
  readonly hops: number;
  readonly #claimed: ClaimedTurn;
  readonly #parts: AskedParts;
  readonly #agent: Agent;
  /** It must not take for silence that a tool is at work. */
  readonly #watch: TurnWatch;

  constructor(parts: AskedParts, claimed: ClaimedTurn, agent: Agent, watch: TurnWatch) {
    const { turn } = claimed;
    this.turnId = turn.turnId;
    this.sessionId = turn.sessionId;
    this.agent = turn.agent;
    this.attempt = turn.attempt;
    this.model = turn.model ?? agent.model;
    this.instructions = agent.instructions;
    this.skills = turn.skillIds.length === 0 ? NO_SKILLS : parts.skills.bodies(turn.skillIds);
    this.message = withoutEarlier(claimed.message);
    this.hops = claimed.hops;
    this.#claimed = claimed;
    this.#parts = parts;
    this.#agent = agent;
    this.#watch = watch;
  }

  get earlier() {
    return earlierOf(this.#claimed.message);
  }

  history() {
    return readHistory(this.#parts.store, this.#claimed);
  }

  offered() {
    const isStarted = new Set(this.#claimed.turn.skillIds);
    const isOffered = (skillId: string) => !isStarted.has(skillId) && hasSkill(this.#agent, skillId);
    return this.#parts.skills.list().filter(({ skillId }) => isOffered(skillId));
  }

  aside<T>(work: Promise<T>): Promise<T> {
    return this.#watch.pause(work);
  }

  whenLate(goesOn: () => boolean) {
    this.#watch.whenLate(goesOn);
  }

  mayRetry() {
    return this.#parts.retries.take(this.agent);
  }

  /** The skills of its agent, and its agent's servers of tools. */
  async tools(signal: StopSignal): Promise<readonly Tool[]> {
    const { toolSource } = this.#agent;
    const own = skillTools(this.#parts.skills, this.#agent);
    if (!toolSource) return own.map((tool) => this.#noted(tool));
    const { tools, missing } = await this.#watch.pause(toolSource.tools(abortSignalOf(signal), this.hops));
    for (const { server, reason } of missing) this.#note({ name: "tool.unavailable", detail: { server, reason } });
    return [...own, ...tools].map((tool) => this.#noted(tool));
  }

  /** The tool, each call of which goes on the turn's timeline. */
  #noted(tool: Tool): Tool {
    const { clock } = this.#parts;
    return {
      ...tool,
      call: async (args, signal) => {
        const began = clock.monotonic();
        const note = (detail: object) => {
          const ms = Math.round(clock.monotonic() - began);
          this.#note({ name: "tool.called", detail: { tool: tool.name, ms, ...detail } });
        };
        try {
          const answer = await this.#watch.pause(tool.call(args, signal));
          note({ ok: true, characters: answer.length });
          return answer;
        } catch (error) {
          note({ ok: false, reason: error instanceof ToolError ? error.message : "the tool failed" });
          throw error;
        }
      },
    };
  }

  #note(note: Note): void {
    noteOn(this.#parts, this.#claimed, note);
  }
}

const NO_SKILLS: BackendTurn["skills"] = [];

/** Puts a step on a turn's timeline. The turn does not depend on it. */
export const noteOn = (
  { store, clock }: Pick<AskedParts, "store" | "clock">,
  { turn: { deliveryId } }: ClaimedTurn,
  { name, detail }: Note,
): void => {
  if (deliveryId === undefined) return;
  store.addDeliveryStep(deliveryId, { at: clock.now(), name, detail: JSON.stringify(detail) }).catch(() => {});
};
