import type { BackendTurn } from "#backends/backend.ts";
import type { Agent } from "#core/agents/agents.ts";
import { earlierOf, withoutEarlier } from "#core/sessions/earlier.ts";
import { readHistory } from "#core/sessions/history.ts";
import { hasSkill, type Skills } from "#core/skills/skills.ts";
import type { Clock } from "#kit/clock.ts";
import type { StopSignal } from "#kit/stop-signal.ts";
import type { ClaimedTurn, Store } from "#store/store.ts";
import type { RetryBudget } from "./retry-budget.ts";
import type { Note } from "./run-turn.ts";
import { toolsOf } from "./turn-tools.ts";
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
  /** Who must not take it for silence that a tool is at work. */
  watch: TurnWatch | undefined = undefined;

  constructor(parts: AskedParts, claimed: ClaimedTurn, agent: Agent) {
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
    return this.watch ? this.watch.pause(work) : work;
  }

  whenLate(goesOn: () => boolean) {
    this.watch?.whenLate(goesOn);
  }

  mayRetry() {
    return this.#parts.retries.take(this.agent);
  }

  tools(signal: StopSignal) {
    const { skills, clock } = this.#parts;
    const note = (step: Note) => noteOn(this.#parts, this.#claimed, step);
    return toolsOf({ agent: this.#agent, skills, hops: this.hops, clock, note, watch: this.watch }, signal);
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
