import { startPostgres } from "#test/harness/postgres-server.ts";
import { type Compared, measureGateway } from "./against-bare.ts";
import { KEPT_EVENTS } from "./events.ts";
import { compare, type Figure, measure, median, unmeasured } from "./figures.ts";
import { SQLITE } from "./gateways.ts";
import { whyNoLoad } from "./machine.ts";
import type { BenchOptions } from "./options.ts";
import { BEATING, wake } from "./p2.ts";

const ENGINES = ["memory", "sqlite", "postgres"] as const;
type Engine = (typeof ENGINES)[number];
const NAMES = { memory: "in memory", sqlite: "on SQLite", postgres: "on PostgreSQL" } as const;
const CONNECTIONS = [1, 16, 64] as const;

/** A store that nobody has used, with all that it needs to be there; the database waits for its disk. */
const openStore = async (engine: Engine): Promise<AsyncDisposable & { store: object }> => {
  if (engine === "postgres") {
    const server = await startPostgres({ fsync: true });
    const store = { type: "postgres", url: server.url() };
    return { store, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
  }
  const store = engine === "sqlite" ? SQLITE : { type: "memory" };
  return { store, [Symbol.asyncDispose]: async () => {} };
};

/** STORES: how many wakes a second each engine acknowledges, each of them kept before it is; beside memory, in the same run. As in P3 they wait for the usual heartbeat. */
export const measureStores = async ({ rounds, seconds, say }: BenchOptions): Promise<Figure[]> => {
  const why = whyNoLoad();
  if (why) return [unmeasured("STORES", "acknowledged wakes a second", why)];
  const figures: Figure[] = [];
  for (const connections of CONNECTIONS) {
    const of: Record<Engine, Compared[]> = { memory: [], sqlite: [], postgres: [] };
    for (let round = 0; round < rounds; round++) {
      say(`STORES: ${connections} connections, round ${round + 1} of ${rounds}`);
      for (const engine of ENGINES) {
        await using opened = await openStore(engine);
        const load = await measureGateway(
          {
            figure: `wakes ${NAMES[engine]}`,
            seconds,
            gateway: { ...BEATING, agent: {}, store: opened.store },
            work: KEPT_EVENTS,
            run: (server, lasting, seed) => wake(server, lasting, seed, connections),
          },
          2 * round,
        );
        of[engine].push(load);
      }
    }
    figures.push(...figuresOf(connections, of));
  }
  return figures;
};

const figuresOf = (connections: number, of: Record<Engine, Compared[]>): Figure[] => {
  const rates = (engine: Engine) => of[engine].map(({ rate }) => rate);
  return ENGINES.map((engine) => {
    const cpu = median(of[engine].map((load) => load.cpu));
    const p99 = median(of[engine].map((load) => (load.p99 ?? Number.NaN) / 1_000));
    const row = {
      gate: "STORES",
      figure: `wakes acknowledged ${NAMES[engine]}, ${connections} connection${connections === 1 ? "" : "s"}`,
      unit: "a second",
      note: `p99 ${p99.toFixed(1)} ms; the gateway's CPU a request ${cpu.toFixed(0)} us${engine === "memory" ? "" : "; the ratio is to memory"}`,
    };
    return engine === "memory" ? measure(rates(engine), row) : compare(rates(engine), rates("memory"), row);
  });
};
