import type { Store } from "#store/store.ts";
import { freeLostBeats } from "./beats.ts";
import { type State, tellOf } from "./state.ts";

/** Frees beats and announcements whose lease ended. */
export const freeLost = (state: State, now: number, time: number): void => {
  freeLostBeats(state, { now, time });
  if (state.announcements.freeLost(time)) tellOf(state, "announcement");
};

/**
 * Erases keys, events, counters and entries of the gateway's stream past their time; about `limit` rows of them. Answers how many it
 * removed; at least `limit` when there is more.
 */
export const forgetInbound = (
  state: State,
  { usageBefore, gatewayBefore, eventsBefore, keysBefore }: Parameters<Store["sweep"]>[0],
  limit: number,
): number => {
  state.usage.forgetBefore(usageBefore);
  let left = limit;
  left -= state.gateway.forgetBefore(gatewayBefore, left);
  left -= state.idempotency.forgetUntil(keysBefore, left);
  left -= state.events.forgetBefore(eventsBefore, left);
  return limit - left;
};
