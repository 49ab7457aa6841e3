import { type Agent, countedModel, labelOfModel } from "#core/agents/agents.ts";
import type { CoreParts } from "#core/parts.ts";
import { keepTrying } from "#core/worker.ts";
import { BackendError, GatewayError } from "#kit/errors.ts";
import { abortSignalOf, type Stop } from "#kit/stop-signal.ts";
import { addUsage, modelNamed, NO_USAGE, usageOf } from "#kit/usages.ts";
import type { ClaimedTurn, CompactionEnd, CompactionTask, TurnEnd, UsageRow } from "#store/store.ts";
import { AUTOMATIC } from "./compactions.ts";
import { type Compact, planCompaction, reasonFor } from "./summaries.ts";

/** Runs a claimed turn that compacts its session, and stores its end or returns it to the queue. Never rejects. */
export async function runCompaction(parts: CoreParts, claimed: ClaimedTurn, task: CompactionTask, stop: Stop) {
  const { store, clock, events, agents } = parts;
  const { claim, turn } = claimed;
  const { sessionId } = turn;
  const began = clock.monotonic();
  let usage: UsageRow | undefined;
  const end = (result: Pick<TurnEnd, "status" | "error" | "compaction">) =>
    keepTrying(parts, "endTurn", () => store.endTurn(claim, { now: clock.now(), reply: "", usage, ...result }));
  try {
    const agent = agents.find(turn.agent);
    if (!agent) throw new GatewayError("turn-failed", `The agent ${turn.agent} was removed from the configuration.`);
    const { before, compact } = await planCompaction(store, agent.backend, turn, task);
    stop.throwIfAborted();
    const compacted = compact && (await write(parts, agent, turn.turnId, stop, compact, (used) => (usage = used)));
    const reason = compacted ? undefined : reasonFor(before.messages, task);
    const compaction: CompactionEnd = { before, after: compacted?.after ?? before, compacted, reason };
    const isOurs = await end({ status: "completed", error: undefined, compaction });
    if (!isOurs || !compacted) return;
    const cause = turn.caller === AUTOMATIC.caller && turn.surface === AUTOMATIC.surface ? "size" : "asked";
    const ms = Math.round(clock.monotonic() - began);
    events.sessionCompacted({ sessionId, agent: agent.name, cause, before, after: compacted.after, ms });
  } catch (error) {
    await endFailed(error).catch((error: unknown) => events.storeFailed({ operation: "endTurn", error }));
  }

  async function endFailed(error: unknown): Promise<void> {
    if (stop.aborted && stop.reason === "handed-back") {
      await store.releaseTurn(claim, { now: clock.now(), delayMs: 0, usage, replyBytes: 0 });
      return;
    }
    const { name, detail } = GatewayError.from(error);
    await end(
      stop.aborted && stop.reason === "cancelled"
        ? { status: "cancelled", error: undefined }
        : { status: "failed", error: { name, detail } },
    );
  }
}

/** Requests the summary from the backend, with the deadline of a turn. Counts the usage even if the backend fails. */
async function write(
  { clock, events, countedModels }: CoreParts,
  agent: Agent,
  turnId: string,
  stop: Stop,
  compact: Compact,
  use: (usage: UsageRow) => void,
) {
  const began = clock.monotonic();
  let usage = NO_USAGE;
  let model = countedModel(agent, undefined);
  const stopTimer = clock.after(agent.deadlineMs, () => stop.abort("timeout"));
  try {
    return await compact(abortSignalOf(stop), (used, answered) => {
      usage = addUsage(usage, usageOf(used));
      model = modelNamed(answered ?? "") ?? model;
    });
  } catch (error) {
    if (stop.reason === "timeout")
      throw new GatewayError("turn-timeout", `The summary took longer than ${agent.deadlineMs} ms.`);
    if (stop.aborted) throw error;
    events.backendFailed({ turnId, agent: agent.name, error });
    const detail = error instanceof BackendError ? error.message : "The backend could not write the summary.";
    throw new GatewayError("turn-failed", detail, { cause: error });
  } finally {
    stopTimer();
    events.attemptUsed({ agent: agent.name, model: labelOfModel(agent, model), usage });
    use({ model: countedModels(agent, model), usage, latencyMs: clock.monotonic() - began });
  }
}
