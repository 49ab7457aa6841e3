import { rmSync } from "node:fs";
import { join } from "node:path";
import type { ErrorName } from "#generated/errors.ts";
import type { SomeConfig, TestGateway } from "#test/harness/gateway.ts";
import type { Reply } from "#test/harness/rest.ts";
import { createRpc } from "#test/harness/rpc.ts";
import { SUMMARISE, skillsFolder } from "#test/harness/skills.ts";
import { call, configOf, gatewayFor, type Provoke, usual } from "./provoke-gateways.ts";

const YEARLY = { cron: "0 0 1 1 *", message: "hi" } as const;
/** A turn that runs until it is stopped, always in the same session. */
const stuck = { stuck: { ...YEARLY, agent: "stuck", session: "schedule:stuck" } };
const again = { again: { ...YEARLY, session: "schedule:again" } };

function run(gateway: TestGateway, route: Parameters<Provoke>[0], schedule_name: string, key?: string) {
  return call(gateway, route, {
    path: { schedule_name },
    ...(key !== undefined && { headers: { "idempotency-key": key } }),
  });
}

/** Runs the schedule `stuck` this many times: the first turn runs, the others wait. */
const stuckOn =
  (name: string, times: number, limits: SomeConfig["limits"]): Provoke =>
  async (route) => {
    const gateway = await gatewayFor(`schedules, ${name}`, { config: { schedules: stuck, limits } });
    for (let n = 1; n < times; n++) await run(gateway, route, "stuck");
    return run(gateway, route, "stuck");
  };

async function turnEnded({ console }: TestGateway, { json }: Reply): Promise<void> {
  const read = () => console.call("turns.get", { path: { turn_id: String(json.turn_id) } });
  while ((await read()).json.status !== "completed") await new Promise(setImmediate);
}

const unknown: Provoke = async (route) => run(await usual(), route, "breif");

/** The errors of schedules that have causes of their own. */
export const scheduleProvocations: Record<string, Partial<Record<ErrorName, Provoke>>> = {
  "schedules.pause": { "schedule-not-found": unknown },
  "schedules.resume": { "schedule-not-found": unknown },
  "schedules.run": {
    "schedule-not-found": unknown,
    "skill-not-found": async (route) => {
      const folder = skillsFolder(SUMMARISE);
      const skills = { dirs: [folder] };
      const schedules = { report: { cron: YEARLY.cron, skill: "summarise-thread" } };
      const gateway = await gatewayFor("schedules, a skill leaves", { config: { skills, schedules } });
      rmSync(join(folder, "summarise-thread"), { recursive: true });
      await createRpc(gateway.url).call("agent.reload", { agentName: "main" });
      return run(gateway, route, "report");
    },
    "turn-not-found": async (route) => {
      const gateway = await usual();
      const { json } = await run(gateway, route, "brief", "an erased run");
      await gateway.gateway.store.deleteSession(String(json.session_id), Date.now());
      return run(gateway, route, "brief", "an erased run");
    },
    "idempotency-mismatch": async (route) => {
      await run(await usual(), route, "brief", "the run of one schedule");
      return run(await usual(), route, "other", "the run of one schedule");
    },
    "session-conflict": async (route) => {
      const gateway = await gatewayFor("schedules, another agent", { config: { schedules: again } });
      await run(gateway, route, "again");
      await gateway.reload(configOf({ schedules: { again: { ...again.again, agent: "other" } } }));
      return run(gateway, route, "again");
    },
    "session-full": async (route) => {
      const config = { schedules: again, limits: { messagesPerSession: 2 } };
      const gateway = await gatewayFor("schedules, short sessions", { config });
      await turnEnded(gateway, await run(gateway, route, "again"));
      return run(gateway, route, "again");
    },
    "session-busy": stuckOn("short queues", 3, { turnsPerSession: 1 }),
    "share-busy": stuckOn("a share of the queue", 4, { turns: 4, share: 0.5 }),
    "share-full": stuckOn("small shares", 3, { storeBytes: "1MiB", share: 0.0003 }),
    "gateway-busy": stuckOn("one queue", 3, { turns: 1 }),
  },
};
