// Loaded next to the gateway with --import: samples its allocations between two messages, and reports the bytes.
import { type HeapProfiler, Session } from "node:inspector";

const session = new Session();
session.connect();
const SAMPLING = {
  samplingInterval: 4_096,
  includeObjectsCollectedByMajorGC: true,
  includeObjectsCollectedByMinorGC: true,
};

process.on("message", (word) => {
  if (word === "begin") session.post("HeapProfiler.startSampling", SAMPLING, () => process.send?.(0));
  else session.post("HeapProfiler.stopSampling", (_, { profile }) => process.send?.(bytesOf(profile.head)));
});
process.on("disconnect", () => process.exit());

function bytesOf({ selfSize, children }: HeapProfiler.SamplingHeapProfileNode): number {
  return children.reduce((sum, child) => sum + bytesOf(child), selfSize);
}
