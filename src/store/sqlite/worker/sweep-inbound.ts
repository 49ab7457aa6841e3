import type { Store } from "#store/store.ts";
import { freeLostBeats } from "./beats.ts";
import { type State, tellOf } from "./state.ts";

/**
 * The inbound half of a sweep: beats and announcements whose lease ended, keys past their time, events, counters and entries of the
 * gateway's stream past theirs; about `limit` rows of them. Answers how many it removed; at least `limit` when there is more.
 */
export const sweepInbound = (
  state: State,
  { now, usageBefore, gatewayBefore, eventsBefore }: Parameters<Store["sweep"]>[0],
  { time, limit }: { time: number; limit: number },
): number => {
  freeLostBeats(state, { now, time });
  if (state.announcements.freeLost(time)) tellOf(state, "announcement");
  state.usage.forgetBefore(usageBefore);
  let left = limit;
  left -= state.gateway.forgetBefore(gatewayBefore, left);
  left -= state.idempotency.forgetUntil(now, left);
  left -= state.events.forgetBefore(eventsBefore, left);
  return limit - left;
};
