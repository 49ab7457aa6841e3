import { statSync } from "node:fs";
import type { LoopLag } from "#observe/loop-lag.ts";
import type { Registry } from "#observe/metrics.ts";

/** Newer kernels (6.2) tell the number of open descriptors as the size of this folder; to list it would block for milliseconds. */
const openDescriptors = (): number | undefined => statSync("/proc/self/fd").size || undefined;

/** Metrics of the process itself, under the names that Prometheus's clients use. */
export const registerProcessMetrics = (
  registry: Registry,
  { version, lag }: { version: string; lag: LoopLag },
): void => {
  const startedAt = Date.now() / 1000 - process.uptime();

  registry.read("gauge", "gateway_build_info", "Always 1; the labels tell the versions.", () => [
    { labels: { version, node: process.version }, value: 1 },
  ]);
  registry.read("gauge", "process_start_time_seconds", "When the process started, Unix time.", () => startedAt);
  registry.read("gauge", "process_uptime_seconds", "How long the process has run.", () => process.uptime());
  registry.read("counter", "process_cpu_seconds_total", "CPU time used, user and system.", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  registry.read("gauge", "process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss());
  registry.read("gauge", "process_open_fds", "Open file descriptors.", openDescriptors);
  registry.read("gauge", "nodejs_heap_bytes", "The JavaScript heap and the buffers beside it.", () => {
    const { heapUsed, heapTotal, external, arrayBuffers } = process.memoryUsage();
    return Object.entries({ used: heapUsed, total: heapTotal, external, buffers: arrayBuffers }).map(
      ([kind, value]) => ({
        labels: { kind },
        value,
      }),
    );
  });
  registry.read(
    "gauge",
    "nodejs_eventloop_lag_seconds",
    "How late the event loop was; quantile 1 is the worst.",
    () => {
      const { p50, p99, max } = lag.read();
      return Object.entries({ "0.5": p50, "0.99": p99, "1": max }).map(([quantile, value]) => ({
        labels: { quantile },
        value,
      }));
    },
  );
};
