// Loaded before the gateway: on SIGUSR2 it reports the resources of the process, after a garbage collection.
import { readdirSync, renameSync, writeFileSync } from "node:fs";
import { queryObjects, setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc");
// Resources that do not keep the process alive are not in Node's lists.
const { constructor: Timer } = setTimeout(() => {}, 0);
const file = process.env.RESOURCES_FILE;

process.on("SIGUSR2", () => {
  collect();
  const active = {};
  for (const name of process.getActiveResourcesInfo()) active[name] = (active[name] ?? 0) + 1;
  const { heapUsed, rss } = process.memoryUsage();
  const timers = queryObjects(Timer, { format: "count" });
  const files = readdirSync("/proc/self/fd").length;
  writeFileSync(`${file}.new`, JSON.stringify({ heapUsed, rss, files, timers, active }));
  renameSync(`${file}.new`, file);
});
