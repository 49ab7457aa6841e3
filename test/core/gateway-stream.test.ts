import { expect, it } from "vitest";
import type { GatewayEntry } from "#store/store.ts";
import { followLive } from "./follow-live.ts";
import { startCore } from "./start-core.ts";

const RELOADED = { name: "system.reloaded", changed: ["limits.turns"], needsRestart: [] } as const;

it("stores events of the gateway, and notifies followers after that", async () => {
  await using core = await startCore();
  const { gatewayStream: stream } = core.core;
  expect(await stream.place()).toEqual({ first: 1, last: 0 });
  const heard: GatewayEntry[] = [];
  const unfollow = followLive(stream, (entry) => heard.push(entry));
  const first = await stream.append(RELOADED);
  expect(first).toEqual({ seq: 1, at: core.clock.now(), ...RELOADED });
  expect(heard).toEqual([first]);
  unfollow();
  const second = await stream.append({ name: "agent.reloaded", agentName: "main", changed: [] });
  expect(heard).toEqual([first]);
  expect(await stream.read(0, 10)).toEqual([first, second]);
  expect(await stream.read(1, 10)).toEqual([second]);
});

it("stores the newest 10 000 entries", async () => {
  await using core = await startCore();
  for (let n = 0; n < 10_001; n++) await core.core.gatewayStream.append(RELOADED);
  expect(await core.core.gatewayStream.place()).toEqual({ first: 2, last: 10_001 });
});

it("stores an entry for a day", async () => {
  await using core = await startCore();
  const { gatewayStream: stream } = core.core;
  await stream.append(RELOADED);
  await core.clock.block(86_400_000 - 1_000);
  expect(await stream.place()).toEqual({ first: 1, last: 1 });
  await core.clock.advance(2_000);
  expect(await stream.place()).toEqual({ first: 2, last: 1 });
});

it("has another epoch in each memory store", async () => {
  await using first = await startCore();
  await using second = await startCore();
  expect(first.core.gatewayStream.epoch).not.toBe(second.core.gatewayStream.epoch);
});
