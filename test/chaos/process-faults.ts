import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { GatewayNode } from "#test/crash/fleet.ts";
import { type Fault, holdNode, type World } from "./world.ts";

/** Causes a fault in one node that no other fault has, and restores it. */
function onNode(work: (node: GatewayNode, world: World) => Promise<void>) {
  return async (world: World) => {
    const node = holdNode(world);
    if (!node) return;
    try {
      await work(node, world);
    } finally {
      world.held.delete(node);
    }
  };
}

const HOUR_MS = 3_600_000;
/** A drain, and a while longer. */
const STOPPED_WITHIN_MS = 60_000;

export const PROCESS_FAULTS: readonly Fault[] = [
  {
    name: "killed",
    run: onNode(async (node, { random }) => {
      await node.kill();
      await pause(random.below(300));
      node.start();
      await node.served();
    }),
  },
  {
    name: "told to stop",
    run: onNode(async (node, { accuse }) => {
      const stopping = node.kill("SIGTERM");
      const isStopped = await Promise.race([stopping.then(() => true), pause(STOPPED_WITHIN_MS).then(() => false)]);
      if (!isStopped) {
        accuse(`a gateway that was told to stop was still there ${STOPPED_WITHIN_MS / 1_000} s later`, node.url);
        await node.kill();
      }
      node.start();
      await node.served();
    }),
  },
  {
    name: "paused",
    run: onNode(async (node, { random }) => {
      node.signal("SIGSTOP");
      await pause(random.below(3_000));
      node.signal("SIGCONT");
      await node.served();
    }),
  },
  {
    name: "paused past its lease",
    why: ({ fleet }) => (fleet.nodes.length > 1 ? undefined : "there is no other gateway to take over"),
    run: onNode(async (node) => {
      node.signal("SIGSTOP");
      await pause(16_000);
      node.signal("SIGCONT");
      await node.served();
    }),
  },
  {
    name: "configuration broken",
    run: onNode(async (node) => {
      const file = join(dirname(node.logFile), "gateway.json");
      const good = readFileSync(file, "utf8");
      for (const text of ["{ agents: ", good.replace('"agents":', '"agent":'), good]) {
        writeFileSync(file, text);
        node.signal("SIGHUP");
        await pause(100);
      }
    }),
  },
  {
    name: "clock jumps",
    why: ({ clock }) => (clock ? undefined : "libfaketime is not installed"),
    run: async ({ clock, random }) => clock?.jumpTo(random.below(2 * HOUR_MS) - HOUR_MS),
  },
  {
    name: "clock stands still",
    why: ({ clock }) => (clock ? undefined : "libfaketime is not installed"),
    run: async ({ clock, random }) => {
      clock?.stop();
      await pause(random.below(1_500));
      clock?.jumpTo(0);
    },
  },
  {
    name: "disk does not sync",
    why: ({ disk, server }) => (server ? "the store is a server's" : disk ? undefined : "libfiu is not installed"),
    run: onNode(async (node, { disk, random }) => {
      await disk?.fail(node.pid, "sync/*", random.pick([0.2, 1]));
      await pause(random.below(1_000));
      await disk?.restore(node.pid, "sync/*");
    }),
  },
  {
    name: "database restarts",
    why: ({ server }) => (server ? undefined : "the store is a file"),
    run: async ({ server, random }) => {
      const [mode, awayMs] = [random.pick(["fast", "immediate"] as const), random.below(1_000)];
      await server?.restart(mode, () => pause(awayMs));
    },
  },
  {
    name: "database answers nothing",
    why: ({ server }) => (server ? undefined : "the store is a file"),
    run: async ({ server, random }) => {
      await server?.signal("SIGSTOP");
      await pause(random.below(3_000));
      await server?.signal("SIGCONT");
    },
  },
];
