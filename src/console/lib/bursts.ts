import { about } from "./format.ts";

type Wait = { window_ms: number; max_wait_ms: number };

/** The wait of a burst, in words. */
export function waitOf({ window_ms, max_wait_ms }: Wait): string {
  return `${about(window_ms)} for more requests, at most ${about(max_wait_ms)}`;
}

/** The bursts of a mapping, in words. */
export function burstsOf({ take, ...wait }: Wait & { take: "last" | "all" }): string {
  return `one turn per key with ${take === "last" ? "the last message" : "all messages"}, waits ${waitOf(wait)}`;
}
