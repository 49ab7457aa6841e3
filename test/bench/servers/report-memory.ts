// Loaded beside the gateway with --import, where its memory is weighed: collects and tells when asked, and does nothing else.

const REST_MS = 100;

process.on("message", async () => {
  // Several times: what one collection finalises, the next one frees.
  for (let times = 0; times < 3; times++) {
    (globalThis as { gc?: () => void }).gc?.();
    await new Promise((resolve) => setTimeout(resolve, REST_MS));
  }
  const { heapUsed, external } = process.memoryUsage();
  process.send?.(heapUsed + external);
});
process.on("disconnect", () => process.exit());
