import type { Fleet, GatewayNode } from "#test/crash/fleet.ts";
import type { FailingDisk } from "#test/harness/failing-disk.ts";
import type { PostgresServer } from "#test/harness/postgres-server.ts";
import type { Random } from "#test/harness/random.ts";
import type { WallClock } from "#test/harness/wall-clock.ts";

/** The targets of faults. A missing tool is undefined. */
export type World = {
  fleet: Fleet;
  random: Random;
  server: PostgresServer | undefined;
  clock: WallClock | undefined;
  disk: FailingDisk | undefined;
  /** Nodes with a current fault. */
  held: Set<GatewayNode>;
  /** Records a broken promise. */
  accuse(words: string, ...ids: string[]): void;
};

/** Reserves a node without a fault; undefined if there is none. */
export function holdNode({ fleet, random, held }: World): GatewayNode | undefined {
  const free = fleet.nodes.filter((node) => !held.has(node));
  if (free.length === 0) return undefined;
  const node = random.pick(free);
  held.add(node);
  return node;
}

export type Fault = {
  name: string;
  /** The reason why it cannot run here; undefined if it can. */
  why?(world: World): string | undefined;
  run(world: World): Promise<void>;
};
