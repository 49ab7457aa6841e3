// Loaded before the gateway: on SIGUSR2 it writes down what the process holds, after a collection.
import { readdirSync, renameSync, writeFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");
const file = process.env.RESOURCES_FILE;

process.on("SIGUSR2", () => {
  collect();
  const active = {};
  for (const name of process.getActiveResourcesInfo()) active[name] = (active[name] ?? 0) + 1;
  const { heapUsed, rss } = process.memoryUsage();
  writeFileSync(`${file}.new`, JSON.stringify({ heapUsed, rss, files: readdirSync("/proc/self/fd").length, active }));
  renameSync(`${file}.new`, file);
});
