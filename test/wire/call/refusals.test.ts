import { describe, expect, test } from "vitest";
import type { Delivery } from "#store/store.ts";
import { createManualClock } from "#test/harness/clock.ts";
import type { AccessLine } from "#wire/call/access-line.ts";
import type { WireCall } from "#wire/call/call.ts";
import { createHeaderLines } from "#wire/call/header-lines.ts";
import { createRefusals } from "#wire/call/refusals.ts";

const clock = createManualClock();
const parts = { clock, headerLines: createHeaderLines((line) => line, clock), recordBodies: () => false };
/** The facts of an access line, and the address and body of its call. */
type Refused = Partial<AccessLine> & { address?: string; path?: string; req?: object };

function call({ address = "192.0.2.1", path = "/rpc", req, ...facts }: Refused = {}) {
  return {
    path,
    requestId: "req_1",
    req: { method: "POST", headers: {}, rawHeaders: [], ...req },
    peer: { address, network: address, safe: true, tls: false },
    parts,
    line: { surface: "rpc", operation: "unknown", error: "unauthenticated", reason: "Send a token.", ...facts },
    recordsFirst: () => true,
  } as unknown as WireCall;
}

function start() {
  const clock = createManualClock();
  const recorded: Delivery[] = [];
  const refusals = createRefusals({ record: (delivery) => recorded.push(delivery), clock });
  return { clock, recorded, refusals, note: (more?: Parameters<typeof call>[0]) => refusals.note(call(more), 401) };
}

describe("a flood of refusals", () => {
  test("from one address is recorded 20 times a minute, separately for each error", async () => {
    const { clock, recorded, note } = start();
    for (let n = 0; n < 100; n++) note();
    expect(recorded).toHaveLength(20);
    await clock.advance(1_000);
    note({ error: "forbidden" });
    expect(recorded).toHaveLength(21);
    await clock.advance(58_999);
    note();
    expect(recorded).toHaveLength(21);
    await clock.advance(1);
    note();
    expect(recorded).toHaveLength(22);
  });

  test("of unauthenticated callers of one address is recorded 100 times an hour, over all errors", async () => {
    const { clock, recorded, note } = start();
    const errors = ["unauthenticated", "forbidden", "tls-required", "origin-not-allowed", "address-not-allowed"];
    const hour = async () => {
      for (let minute = 0; minute < 60; minute++) {
        for (const error of errors) {
          for (let n = 0; n < 25; n++) note({ error });
          await clock.advance(12_000);
        }
      }
    };
    await hour();
    expect(recorded).toHaveLength(100);
    await hour();
    expect(recorded).toHaveLength(200);
  });

  test("of unauthenticated callers does not use the limit of authenticated ones, even at one address", async () => {
    const { recorded, note } = start();
    for (let n = 0; n < 1_000; n++) note({ address: `192.0.2.${n}` });
    for (let n = 0; n < 100; n++) note({ error: "forbidden" });
    const before = recorded.length;
    for (let n = 0; n < 5; n++) note({ error: "forbidden", caller: "ops" });
    expect(recorded.slice(before).map(({ caller }) => caller)).toEqual(Array(5).fill("ops"));
  });

  test("from many addresses is recorded 20 times a second", async () => {
    const { clock, recorded, note } = start();
    for (let second = 0; second < 3; second++) {
      for (let n = 0; n < 1_000; n++) note({ address: `192.0.2.${second}.${n}` });
      expect(recorded).toHaveLength(20 * (second + 1));
      await clock.advance(1_000);
    }
  });

  test("uses nothing of the hourly limit of an address that is not recorded because others fill the second", async () => {
    const { clock, recorded, note } = start();
    for (let n = 0; n < 20; n++) note({ address: `192.0.2.${n}` });
    for (let n = 0; n < 100; n++) note({ address: "203.0.113.7" });
    await clock.advance(1_000);
    note({ address: "203.0.113.7" });
    expect(recorded.at(-1)?.address).toBe("203.0.113.7");
  });

  test("is limited for webhooks by the same count", () => {
    const { recorded, refusals, note } = start();
    for (let n = 0; n < 20; n++) expect(refusals.admits("192.0.2.1", "unauthenticated", false)).toBe(true);
    expect(refusals.admits("192.0.2.1", "unauthenticated", false)).toBe(false);
    note({ address: "192.0.2.2" });
    expect(recorded).toHaveLength(0);
  });
});

describe("the recorded data of a refusal", () => {
  const one = (more: Parameters<typeof call>[0]): Delivery | undefined => {
    const { recorded, note } = start();
    note(more);
    return recorded[0];
  };

  test("has the path of an unauthenticated caller only as far as the contract has it", () => {
    const at = (path: string, method = "GET") => {
      const found = one({ surface: "rest", path, req: { method, headers: {}, rawHeaders: [] } });
      return [found?.operation, found?.path];
    };
    expect(at("/api/v1/turns/turn_1")).toEqual(["turns.get", "/api/v1/turns/{turn_id}"]);
    expect(at("/api/v1/turns/gw_a-token/cancel", "POST")).toEqual(["turns.cancel", "/api/v1/turns/{turn_id}/cancel"]);
    expect(at("/api/v1/gw_a-token")).toEqual(["unknown", "/api/v1/*"]);
    expect(at("/api/v1/chat/send")).toEqual(["unknown", "/api/v1/*"]);
  });

  test("has at most a few KiB of the request's head, in complete lines", () => {
    const rawHeaders = Array.from({ length: 20 }, (_, n) => [`X-${n}`, "a".repeat(1_000)]).flat();
    const found = one({
      req: { method: "M".repeat(100), headers: { "idempotency-key": "k".repeat(9_000) }, rawHeaders },
    });
    expect(found?.headers.split("\n").map((line) => line.length)).toEqual([1_005, 1_005, 1_005, 1_005]);
    expect([found?.method.length, found?.senderId?.length]).toEqual([32, 256]);
    expect(one({ req: { method: "GET", headers: {}, rawHeaders: ["X-A", "a".repeat(9_000)] } })?.headers).toBe("");
  });
});
