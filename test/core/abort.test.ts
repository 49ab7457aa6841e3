import { expect, it } from "vitest";
import { orAborted } from "#kit/abort.ts";
import { Stop } from "#kit/stop-signal.ts";

// An unhandled rejection would end the process, and fail the run of these tests.
it.each(["before", "meanwhile"])("a failure after the signal was aborted is ignored: aborted %s", async (when) => {
  const signal = new Stop();
  if (when === "before") signal.abort("left");
  let fail = (_error: Error) => {};
  const waiting = orAborted(new Promise((_, reject) => (fail = reject)), signal);
  signal.abort("left");
  await expect(waiting).rejects.toBe("left");
  fail(new Error("too late"));
  await new Promise((resolve) => setImmediate(resolve));
});

it("a value that arrives before the abort is returned, and no listener remains", async () => {
  const { signal } = new AbortController();
  const listeners = new Set<unknown>();
  signal.addEventListener = (_: string, listener: unknown) => void listeners.add(listener);
  signal.removeEventListener = (_: string, listener: unknown) => void listeners.delete(listener);
  expect(await orAborted(Promise.resolve("here"), signal)).toBe("here");
  await new Promise((resolve) => setImmediate(resolve));
  expect(listeners.size).toBe(0);
});
