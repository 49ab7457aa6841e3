import { expect, it } from "vitest";
import { EVENT_TYPES } from "#kit/notifications.ts";
import { NO_POLICY } from "#store/policy.ts";
import { startCore } from "./start-core.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

/** The core with endpoints that have all events. Keys of the configuration and of the store can expire. */
function startWith(endpoints: readonly string[], keys: Parameters<typeof startCore>[0] = {}) {
  return startCore({ ...keys, settings: { ...keys.settings, policy: policyOf(endpoints) } });
}
function policyOf(endpoints: readonly string[]) {
  return { ...NO_POLICY, notify: endpoints.map((name) => ({ name, events: EVENT_TYPES, agents: undefined })) };
}

async function noticesOf({ store }: Awaited<ReturnType<typeof startWith>>) {
  const { items } = await store.listNotifications({ limit: 100 });
  return items.flatMap(({ type, endpoint, data, eventId }) =>
    type === "key.expiring" ? { endpoint, eventId, ...JSON.parse(data) } : [],
  );
}

it("notifies endpoints once of a key that expires within seven days", async () => {
  await using core = await startWith(["ops"]);
  const expiresAt = core.clock.now() + 8 * DAY;
  const { key } = await core.keys.create({ name: "ci", scopes: ["chat"], expiresAt }, "console");
  await core.keys.create({ name: "later", scopes: ["chat"], expiresAt: expiresAt + 30 * DAY }, "console");
  await core.clock.block(DAY - HOUR);
  expect(await noticesOf(core)).toEqual([]);
  for (let hours = 0; hours < 10 * 24; hours++) await core.clock.block(HOUR);
  expect(await noticesOf(core)).toEqual([
    {
      endpoint: "ops",
      eventId: `ntf_${key.keyId.slice("key_".length)}_${expiresAt}`,
      keyId: key.keyId,
      name: "ci",
      expiresAt: new Date(expiresAt).toISOString(),
    },
  ]);
});

it("notifies an endpoint that is configured later, and not of a key that was replaced", async () => {
  await using core = await startWith([]);
  const expiresAt = core.clock.now() + DAY;
  const { key } = await core.keys.create({ name: "ci", scopes: ["chat"], expiresAt }, "console");
  await core.clock.block(HOUR);
  await core.core.reconfigure({ ...core.settingsWith(), policy: policyOf(["ops"]) });
  await core.clock.block(HOUR);
  await core.core.reconfigure({ ...core.settingsWith(), policy: policyOf(["ops", "team"]) });
  await core.clock.block(HOUR);
  expect((await noticesOf(core)).map(({ endpoint }) => endpoint)).toEqual(["team", "ops"]);
  await core.keys.rotate(key.keyId, { overlapMs: HOUR, expiresAt: undefined }, "console");
  await core.core.reconfigure({ ...core.settingsWith(), policy: policyOf(["third"]) });
  await core.clock.block(HOUR);
  expect(await noticesOf(core)).toHaveLength(2);
});

it("notifies endpoints of a key of the configuration, by an id from its name", async () => {
  const key = { name: "ci ü.", hash: Buffer.alloc(32), scopes: ["chat"], prefix: undefined } as const;
  await using core = await startWith(["ops"], {
    settings: { keys: [{ ...key, expiresAt: Date.now() * 2, agents: undefined, rateLimit: undefined }] },
  });
  expect(await noticesOf(core)).toEqual([]);
  const expiresAt = core.clock.now() + DAY;
  const next = { ...core.settingsWith(), policy: policyOf(["ops"]) };
  await core.core.reconfigure({ ...next, keys: [{ ...key, expiresAt, agents: undefined, rateLimit: undefined }] });
  await core.clock.block(HOUR);
  expect(await noticesOf(core)).toEqual([
    {
      endpoint: "ops",
      eventId: expect.stringMatching(/^ntf_[A-Za-z0-9_-]+$/),
      keyId: null,
      name: "ci ü.",
      expiresAt: new Date(expiresAt).toISOString(),
    },
  ]);
});
