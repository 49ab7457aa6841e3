import { afterAll, describe, expect, test } from "vitest";
import { errors } from "#generated/errors.ts";
import { routes } from "#generated/routes.ts";
import type { Route } from "#test/harness/contract.ts";
import { openAiProvocations, provocations } from "./provoke.ts";
import { closeGateways } from "./provoke-gateways.ts";
import { recorderProvocations } from "./provoke-recorder.ts";
import { scheduleProvocations } from "./provoke-schedules.ts";

afterAll(closeGateways);

const served = (routes as readonly Route[]).filter(({ surface }) => surface !== "hooks");

describe.each(served)("$operation", (route) => {
  for (const name of route.errors) {
    if (name === "internal") continue; // internal.test.ts
    const provoke =
      recorderProvocations[route.operation]?.[name] ??
      scheduleProvocations[route.operation]?.[name] ??
      openAiProvocations[route.operation]?.[name] ??
      provocations[name];
    test(`answers ${errors[name].status} ${name}`, async () => {
      if (!provoke) throw new Error(`nothing in provoke.ts makes ${route.operation} answer ${name}`);
      const reply = await provoke(route);
      expect(reply).toMatchObject({ error: name, status: errors[name].status });
    });
  }
});

test("these operations refuse a key because of its scope", () => {
  const ofScope = (scope: Route["scope"]) => served.flatMap((route) => (route.scope === scope ? route.operation : []));
  expect(ofScope("console")).toEqual(["keys.list", "keys.create", "keys.revoke", "keys.rotate"]);
  expect(ofScope("admin")).toEqual([
    "skills.get",
    ...["turns.list", "turns.announce"],
    ...["agents.beat", "agents.pause", "agents.resume"],
    ...["budgets.list", "budgets.grant"],
    ...["schedules.list", "schedules.run", "schedules.pause", "schedules.resume"],
    ...["deliveries.list", "deliveries.get", "deliveries.replay"],
    ...["events.list", "events.get", "events.replay"],
    ...["notifications.list", "notifications.replay", "notifications.test"],
    ...["mappings.list", "mappings.dryRun", "mappings.backtest"],
    "config.get",
    "codes.create",
  ]);
  for (const route of served)
    if (route.scope === "admin" || route.scope === "console") expect(route.errors).toContain("forbidden");
});
