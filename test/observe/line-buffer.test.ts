import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { createLineBuffer } from "#observe/line-buffer.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** How many lines each write had, of a file that is written at once. */
const createLog = () => {
  const writes: number[] = [];
  const buffer = createLineBuffer({
    sink: {
      write: (bytes, done) => {
        writes.push(bytes.toString().split("\n").length - 1);
        queueMicrotask(done);
      },
      close: () => {},
    },
    maxBytes: 1_000_000,
    clean: (text) => text,
    dropLine: () => "dropped\n",
  });
  return { buffer, writes };
};

const addEachMs = async (buffer: { add(line: string): void }, count: number): Promise<void> => {
  for (let n = 0; n < count; n++) {
    buffer.add("a line\n");
    await vi.advanceTimersByTimeAsync(1);
  }
};

it("writes a line that comes alone 20 ms later", async () => {
  const { buffer, writes } = createLog();
  for (let n = 0; n < 3; n++) {
    buffer.add("a line\n");
    await vi.advanceTimersByTimeAsync(19);
    expect(writes).toHaveLength(n);
    await vi.advanceTimersByTimeAsync(1);
    expect(writes).toHaveLength(n + 1);
  }
});

it("gathers for 50 ms while lines come fast, and for 20 ms once they do not", async () => {
  const { buffer, writes } = createLog();
  await addEachMs(buffer, 20 + 4 * 50);
  expect(writes).toEqual([20, 50, 50, 50, 50]);
  buffer.add("a line\n");
  await vi.advanceTimersByTimeAsync(50);
  buffer.add("a line\n");
  await vi.advanceTimersByTimeAsync(20);
  expect(writes.slice(5)).toEqual([1, 1]);
});
