import type { Fleet, GatewayNode } from "#test/crash/fleet.ts";
import type { FailingDisk } from "#test/harness/failing-disk.ts";
import type { PostgresServer } from "#test/harness/postgres-server.ts";
import type { Random } from "#test/harness/random.ts";
import type { WallClock } from "#test/harness/wall-clock.ts";

/** The targets of faults. A tool that the machine lacks is undefined. */
export type World = {
  fleet: Fleet;
  random: Random;
  server: PostgresServer | undefined;
  clock: WallClock | undefined;
  disk: FailingDisk | undefined;
  /** Nodes that some fault has in hand. */
  held: Set<GatewayNode>;
  /** Notes what may never be, and was. */
  accuse(words: string, ...ids: string[]): void;
};

/** Takes a node that nobody else works on; undefined when there is none. */
export function holdNode({ fleet, random, held }: World): GatewayNode | undefined {
  const free = fleet.nodes.filter((node) => !held.has(node));
  if (free.length === 0) return undefined;
  const node = random.pick(free);
  held.add(node);
  return node;
}

export type Fault = {
  name: string;
  /** Why it cannot be done here; undefined when it can. */
  why?(world: World): string | undefined;
  run(world: World): Promise<void>;
};
