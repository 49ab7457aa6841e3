import { rmSync } from "node:fs";
import { join } from "node:path";
import type { ErrorName } from "#generated/errors.ts";
import type { RpcMethod } from "#generated/rpc-types.ts";
import { GatewayError } from "#kit/errors.ts";
import { SECRETS, type SomeConfig, type TestGateway } from "#test/harness/gateway.ts";
import { SUMMARISE, skillsFolder } from "#test/harness/skills.ts";
import { call, configOf, type Provoke, type Stage, usual, withFailingStore } from "./provoke.ts";

const YEARLY = { cron: "0 0 1 1 *", message: "hi" } as const;
/** A turn that runs until it is stopped, always in the same session. */
const stuck = { stuck: { ...YEARLY, agent: "stuck", session: "schedule:stuck" } };
const again = { again: { ...YEARLY, session: "schedule:again" } };

function run(stage: Stage, gateway: TestGateway, scheduleName: string, idempotencyKey?: string) {
  return call(stage, gateway, { params: { scheduleName, ...(idempotencyKey !== undefined && { idempotencyKey }) } });
}

/** Runs the schedule `stuck` this many times: the first turn runs, the others wait. */
const stuckOn =
  (name: string, times: number, limits: SomeConfig["limits"]): Provoke =>
  async (stage) => {
    const gateway = await stage.gatewayFor(`schedules, ${name}`, { config: { schedules: stuck, limits } });
    for (let n = 1; n < times; n++) await run(stage, gateway, "stuck");
    return run(stage, gateway, "stuck");
  };

async function turnEnded({ gateway: { store } }: TestGateway, turnId: string): Promise<void> {
  while ((await store.getTurn(turnId))?.status !== "completed") await new Promise(setImmediate);
}

type Run = { turnId: string; sessionId: string };
const unknown: Provoke = async (stage) => run(stage, await usual(stage), "yaerly");
/** Only a full disk refuses a change that needs no room. */
const fullDisk: Provoke = (stage) =>
  withFailingStore(new GatewayError("store-full", "The store's disk is full."), stage);

/** The errors of schedules that have causes of their own. */
export const scheduleProvocations: Partial<Record<RpcMethod, Partial<Record<ErrorName, Provoke>>>> = {
  "schedule.pause": { "schedule-not-found": unknown, "store-full": fullDisk },
  "schedule.resume": { "schedule-not-found": unknown, "store-full": fullDisk },
  "schedule.run": {
    "schedule-not-found": unknown,
    "skill-not-found": async (stage) => {
      const folder = skillsFolder(SUMMARISE);
      const schedules = { report: { cron: YEARLY.cron, skill: "summarise-thread" } };
      const config = { skills: { dirs: [folder] }, schedules };
      const gateway = await stage.gatewayFor("schedules, a skill leaves", { config });
      rmSync(join(folder, "summarise-thread"), { recursive: true });
      await call({ ...stage, method: "agent.reload" }, gateway);
      return run(stage, gateway, "report");
    },
    "turn-not-found": async (stage) => {
      const gateway = await usual(stage);
      const { result } = await run(stage, gateway, "yearly", "an erased run");
      await gateway.gateway.store.deleteSession((result as Run).sessionId, Date.now());
      return run(stage, gateway, "yearly", "an erased run");
    },
    "idempotency-mismatch": async (stage) => {
      await run(stage, await usual(stage), "yearly", "the run of one schedule");
      return run(stage, await usual(stage), "other", "the run of one schedule");
    },
    "session-conflict": async (stage) => {
      const gateway = await stage.gatewayFor("schedules, another agent", { config: { schedules: again } });
      await run(stage, gateway, "again");
      await gateway.reload(configOf({ schedules: { again: { ...again.again, agent: "other" } } }));
      return run(stage, gateway, "again");
    },
    "session-full": async (stage) => {
      const config = { schedules: again, limits: { messagesPerSession: 2 } };
      const gateway = await stage.gatewayFor("schedules, short sessions", { config });
      const { result } = await run(stage, gateway, "again");
      await turnEnded(gateway, (result as Run).turnId);
      return run(stage, gateway, "again");
    },
    "session-busy": stuckOn("short queues", 3, { turnsPerSession: 1 }),
    "share-busy": stuckOn("a share of the queue", 4, { turns: 4, share: 0.5 }),
    "share-full": stuckOn("small shares", 3, { storeBytes: "1MiB", share: 0.0003 }),
    "gateway-busy": stuckOn("one queue", 3, { turns: 1 }),
    "store-full": stuckOn("a small store", 2, { storeBytes: 1 }),
    "shutting-down": async (stage) => {
      const gateway = await stage.gatewayFor("schedules, the end", { config: { schedules: stuck } });
      await using transport = await stage.open(gateway, SECRETS.rpcToken);
      const send = async () => {
        const params = { scheduleName: "stuck" };
        const { text } = await transport.send(JSON.stringify({ jsonrpc: "2.0", id: 1, method: stage.method, params }));
        return JSON.parse(String(text));
      };
      await send();
      // The test that closes the gateways waits for its end.
      void gateway.gateway.drain("test", 1_000);
      return await send();
    },
  },
};
