import { statSync } from "node:fs";
import type { LoopLag } from "#observe/loop-lag.ts";
import type { Registry } from "#observe/metrics.ts";

/** Newer kernels (6.2) report the number of open descriptors as the size of this folder; listing it would block for milliseconds. */
function openDescriptors(): number | undefined {
  return statSync("/proc/self/fd").size || undefined;
}

/** Samples that differ in one label. */
function by(label: string, values: Readonly<Record<string, number>>) {
  return Object.entries(values).map(([text, value]) => ({ labels: { [label]: text }, value }));
}

/** Metrics of the process itself, under the names that Prometheus's clients use. */
export function registerProcessMetrics(registry: Registry, { version, lag }: { version: string; lag: LoopLag }): void {
  const startedAt = Date.now() / 1000 - process.uptime();
  const gauge = (name: string, help: string, read: Parameters<Registry["read"]>[3]): void =>
    registry.read("gauge", name, help, read);

  gauge("gateway_build_info", "Always 1. The labels have the versions.", () => [
    { labels: { version, node: process.version }, value: 1 },
  ]);
  gauge("process_start_time_seconds", "Start time of the process, in seconds since the Unix epoch.", () => startedAt);
  gauge("process_uptime_seconds", "Uptime of the process.", () => process.uptime());
  registry.read("counter", "process_cpu_seconds_total", "CPU time used, user and system.", () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  });
  gauge("process_resident_memory_bytes", "Resident memory.", () => process.memoryUsage.rss());
  gauge("process_open_fds", "Open file descriptors.", openDescriptors);
  gauge("nodejs_heap_bytes", "Size of the JavaScript heap and of buffers outside it.", () => {
    const { heapUsed: used, heapTotal: total, external, arrayBuffers: buffers } = process.memoryUsage();
    return by("kind", { used, total, external, buffers });
  });
  gauge("nodejs_eventloop_lag_seconds", "Delay of the event loop. Quantile 1 is the longest recent delay.", () => {
    const { p50, p99, max } = lag.read();
    return by("quantile", { "0.5": p50, "0.99": p99, "1": max });
  });
}
