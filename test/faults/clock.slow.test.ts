import { describe, expect, test } from "vitest";
import { postgresTests } from "#test/harness/postgres.ts";
import { createWallClock, whyNoClock } from "#test/harness/wall-clock.ts";
import { clientOf, linesOf, startNodes, until } from "./nodes.ts";

const HOUR_MS = 3_600_000;
const why = whyNoClock();
const suffix = why ? ` (${why})` : "";

const agents = {
  quick: { backend: "echo", heartbeat: { every: "200ms" } },
  hourly: { backend: "echo", heartbeat: { every: "30m" } },
  slow: { backend: "echo", deadline: "20s", heartbeat: { every: "30m" }, echo: { delayMs: 400, chunks: 4 } },
};

describe("F14: the wall clock of a running gateway jumps by an hour", () => {
  test.skipIf(why)(
    `deadlines, windows and beats do not move with it${suffix}`,
    async () => {
      using clock = createWallClock();
      const rateLimit = { maxRequests: 40, windowMs: 60_000 };
      const webhooks = { token: "webhook-token-of-the-crash-test", rateLimit };
      await using fleet = await startNodes({ env: clock.env, agents, more: { webhooks } });
      const { first } = fleet;
      const client = clientOf(first);
      // A turn that runs during both jumps, and an event that is not due.
      const { turnId } = (await client.agent({ message: "through it all", agent: "slow" })).json;
      const early = (await client.wake({ text: "early", agent: "hourly" })).json.eventId as string;
      const wake = async () => {
        const { status, json } = await client.wake({ text: "beat" });
        expect(status, JSON.stringify(json)).toBe(200);
        return json.eventId as string;
      };
      let sent = 2;
      // A beat that handled events, once its log line exists: the end of the events is reported slightly earlier.
      const beats = () =>
        linesOf(first, "beat.ran", { agent: "quick" }).flatMap(({ events }) =>
          Number(events) > 0 ? [Number(events)] : [],
        );
      const told = () => beats().reduce((sum, events) => sum + events, 0);
      const allTold = async () => {
        await until(() => told() >= sent - 2);
        expect(told()).toBe(sent - 2);
      };
      for (const offset of [HOUR_MS, -HOUR_MS, 0]) {
        await allTold();
        const ranBefore = beats().length;
        clock.jumpTo(offset);
        for (let n = 0; n < 3; n++, sent++) {
          const id = await wake();
          await until(async () => (await client.event(id)).status === "handled");
        }
        // Each was handled in its own beat, or with another: never in more beats than there were events.
        await allTold();
        expect(beats().length - ranBefore).toBeLessThanOrEqual(3);
      }
      await until(async () => (await client.turn(turnId as string)).status === "completed");
      expect(await client.turn(turnId as string)).toMatchObject({ attempt: 1, reply: "through it all" });
      expect((await client.event(early)).status).toBe("queued");
      // The window is always the same.
      clock.jumpTo(HOUR_MS);
      for (; sent < rateLimit.maxRequests; sent++) expect((await client.wake({ text: "more" })).status).toBe(200);
      const refused = await client.wake({ text: "too many" });
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get("retry-after"))).toBeLessThanOrEqual(60);
      clock.jumpTo(-HOUR_MS);
      expect((await client.wake({ text: "too many" })).status).toBe(429);
    },
    60_000,
  );
});

await postgresTests((server) => {
  test.skipIf(why)(
    `F14: gateways with clocks an hour apart take no turn from each other${suffix}`,
    async () => {
      using clock = createWallClock();
      const store = { type: "postgres", url: await server.createSchema() };
      await using ahead = await startNodes({ env: clock.env, agents, store });
      await using fleet = await startNodes({ agents, store });
      const [there, here] = [clientOf(ahead.first), clientOf(fleet.first)];
      clock.jumpTo(HOUR_MS);
      const started = await Promise.all([
        there.agent({ message: "of the one", agent: "slow" }),
        here.agent({ message: "of the other", agent: "slow" }),
      ]);
      clock.jumpTo(-HOUR_MS);
      for (const { json } of started) {
        await until(async () => (await there.turn(json.turnId as string)).status === "completed");
        const seen = await until(async () => {
          const turn = await here.turn(json.turnId as string);
          return turn.turn_id !== undefined && turn;
        });
        expect(seen).toMatchObject({ attempt: 1, status: "completed" });
      }
      // One beat each, on any gateway.
      const { eventId } = (await there.wake({ text: "<event>" })).json;
      await until(async () => (await here.event(eventId as string)).status === "handled");
      const ran = () => [ahead.first, fleet.first].flatMap((node) => linesOf(node, "beat.ran", { events: 1 }));
      await until(() => ran().length > 0);
      expect(ran()).toHaveLength(1);
    },
    60_000,
  );
});
