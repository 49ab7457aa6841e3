import { describe, expect, it } from "vitest";
import { startGateway } from "#test/harness/gateway.ts";
import { createRpc } from "#test/harness/rpc.ts";

const DAY_MS = 86_400_000;
function inMs(ms: number) {
  return new Date(Date.now() + ms).toISOString();
}

describe("a key that expires", () => {
  it("MUST work until then, and answer key-expired afterwards, with its name and the next step", async () => {
    await using gateway = await startGateway();
    const { json: long } = await gateway.console.call("keys.create", {
      body: { name: "long", expires_at: inMs(DAY_MS) },
    });
    expect((await gateway.rest.call("skills.list", { key: String(long.key) })).status).toBe(200);
    const { json } = await gateway.console.call("keys.create", { body: { name: "short", expires_at: inMs(2_500) } });
    const key = String(json.key);
    const refused = async () => (await gateway.rest.call("skills.list", { key })).problem;
    await expect.poll(refused).toMatchObject({ type: "/docs/errors.html#key-expired", status: 401 });
    const { detail } = (await gateway.rest.call("skills.list", { key })).problem;
    expect(detail).toBe(
      `The key \`short\` expired at ${json.expires_at}. Create a new one on the console's settings page.`,
    );
  });

  it("MUST NOT count as a guess", async () => {
    await using gateway = await startGateway();
    const { json } = await gateway.console.call("keys.create", { body: { name: "short", expires_at: inMs(2_500) } });
    const key = String(json.key);
    await expect.poll(async () => (await gateway.rest.call("skills.list", { key })).error).toBe("key-expired");
    for (let n = 0; n < 30; n++) await gateway.rest.call("skills.list", { key });
    expect((await gateway.rest.call("skills.list", { key })).headers.get("retry-after")).toBeNull();
  });

  it.each([
    [inMs(-1_000), "is not in the future"],
    [inMs(11 * 366 * DAY_MS), "is more than ten years ahead"],
    ["2027-02-31T00:00:00.000Z", "is not a valid date and time"],
  ])("MUST be refused with an invalid end: %s", async (expires_at, message) => {
    await using gateway = await startGateway();
    const { problem } = await gateway.console.call("keys.create", { body: { name: "odd", expires_at } });
    expect(problem.errors).toEqual([{ pointer: "/expires_at", message }]);
  });

  it.each(["2027-03-01T00:00:00Z", "2027-03-01"])(
    "has an error that describes the form of its end: %s",
    async (expires_at) => {
      await using gateway = await startGateway();
      const { problem } = await gateway.console.call("keys.create", { body: { name: "odd", expires_at } });
      expect(problem.detail).toBe("expires_at must be a time in UTC, written as 2026-11-21T00:00:00.000Z.");
    },
  );

  it("MUST be accepted from the configuration, too, and end with a reload", async () => {
    await using gateway = await startGateway();
    const keys = [{ name: "ci", key: "a-key-of-the-configuration", expiresAt: "2035-01-31" }];
    const key = "a-key-of-the-configuration";
    await gateway.reload({ gateway: { rest: { auth: { keys } } } });
    expect((await gateway.rest.call("skills.list", { key })).status).toBe(200);
    await gateway.reload({ gateway: { rest: { auth: { keys: [{ ...keys[0], expiresAt: "2020-01-31" }] } } } } as never);
    expect((await gateway.rest.call("skills.list", { key })).error).toBe("key-expired");
  });

  it("is reported in system.health two weeks before, without being degraded", async () => {
    await using gateway = await startGateway();
    await gateway.console.call("keys.create", { body: { name: "partner", expires_at: inMs(3 * DAY_MS) } });
    await gateway.console.call("keys.create", { body: { name: "far", expires_at: inMs(300 * DAY_MS) } });
    const { result } = await createRpc(gateway.url, gateway.rpcToken).call("system.health", {});
    const part = result.parts.find(({ name }: { name: string }) => name === "rest.keys");
    expect(part).toMatchObject({ status: "ok", detail: expect.stringContaining("partner expires on ") });
    expect(String(part?.detail)).not.toContain("far");
  });

  it("is reported with the next step: a key of the configuration cannot be rotated", async () => {
    const expiresAt = inMs(-DAY_MS);
    const keys = [{ name: "ci", key: "a-key-of-the-configuration", expiresAt }];
    await using gateway = await startGateway({ config: { gateway: { rest: { auth: { keys } } } } });
    await gateway.console.call("keys.create", { body: { name: "partner", expires_at: inMs(3 * DAY_MS) } });
    const { result } = await createRpc(gateway.url, gateway.rpcToken).call("system.health", {});
    const { detail } = result.parts.find(({ name }: { name: string }) => name === "rest.keys") ?? {};
    expect(detail).toBe(
      `partner expires on ${inMs(3 * DAY_MS).slice(0, 10)}: rotate it, and give its clients the new key. ` +
        `ci expired on ${expiresAt.slice(0, 10)}: change \`expiresAt\` in the configuration, or replace the key there.`,
    );
    const { text } = await gateway.rest.send("GET", "/metrics", { key: gateway.rpcToken });
    expect(text).toContain('gateway_rest_keys_ending{state="soon"} 1\n');
    expect(text).toContain('gateway_rest_keys_ending{state="ended"} 1\n');
  });
});

describe("rotating a key", () => {
  it("MUST create a key like the other, and both work during the overlap", async () => {
    await using gateway = await startGateway();
    const { json: old } = await gateway.console.call("keys.create", { body: { name: "ops", scopes: ["admin"] } });
    const path = { key_id: String(old.key_id) };
    const { status, json } = await gateway.console.call("keys.rotate", { path });
    expect(status).toBe(201);
    expect(json).toMatchObject({ name: "ops", scopes: ["admin"], replaces: old.key_id, replaced_by: null });
    for (const key of [old.key, json.key])
      expect((await gateway.rest.call("deliveries.list", { key: String(key) })).status).toBe(200);
    const { keys } = (await gateway.console.call("keys.list")).json as { keys: Record<string, unknown>[] };
    expect(keys.find(({ key_id }) => key_id === old.key_id)).toMatchObject({
      replaced_by: json.key_id,
      expires_at: json.replaced_expires_at,
    });
  });

  it("MUST end the old key at once if no overlap is requested", async () => {
    await using gateway = await startGateway();
    const { json: old } = await gateway.console.call("keys.create", { body: { name: "ops" } });
    const path = { key_id: String(old.key_id) };
    const { json } = await gateway.console.call("keys.rotate", { path, body: { overlap_seconds: 0 } });
    expect((await gateway.rest.call("skills.list", { key: String(old.key) })).error).toBe("key-expired");
    expect((await gateway.rest.call("skills.list", { key: String(json.key) })).status).toBe(200);
  });

  it("MUST be refused for a key that was rotated or has expired, and be only for the console token", async () => {
    await using gateway = await startGateway();
    const { json: old } = await gateway.console.call("keys.create", { body: { name: "ops" } });
    const path = { key_id: String(old.key_id) };
    const both = [1, 2].map(() => gateway.console.call("keys.rotate", { path, body: {} }));
    expect((await Promise.all(both)).map(({ status }) => status).toSorted()).toEqual([201, 409]);
    expect((await gateway.rest.call("keys.rotate", { path, body: {}, key: gateway.adminKey })).error).toBe("forbidden");
    const { json: short } = await gateway.console.call("keys.create", { body: { name: "s", expires_at: inMs(2_500) } });
    const key = String(short.key);
    await expect.poll(async () => (await gateway.rest.call("skills.list", { key })).error).toBe("key-expired");
    const { problem } = await gateway.console.call("keys.rotate", { path: { key_id: String(short.key_id) }, body: {} });
    expect(problem.detail).toContain("has expired");
  });
});
