// Loaded next to the gateway with --import to measure its memory: collects garbage and reports on request, and does nothing else.

const REST_MS = 100;

process.on("message", async () => {
  // Several times, because one collection finalises what the next one frees.
  for (let times = 0; times < 3; times++) {
    (globalThis as { gc?: () => void }).gc?.();
    await new Promise((resolve) => setTimeout(resolve, REST_MS));
  }
  const { heapUsed, external } = process.memoryUsage();
  process.send?.(heapUsed + external);
});
process.on("disconnect", () => process.exit());
