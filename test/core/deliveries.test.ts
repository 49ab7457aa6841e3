import { describe, expect, it } from "vitest";
import { headersOf, whyNotReplayable } from "#core/recorder/deliveries.ts";
import { isSecretHeader } from "#kit/secret-headers.ts";
import type { Store } from "#store/store.ts";
import { deliveryOf, refusal } from "#test/stores/world.ts";
import { startCore } from "./start-core.ts";

const unmatched = { ...deliveryOf("dlv_1"), answer: "unmatched" } as const;

/** A store whose recorder fails. */
function broken(recordDelivery: Store["recordDelivery"]) {
  return (): Partial<Store> => ({ recordDelivery });
}

describe("recording a request that started nothing", () => {
  it("stores it", async () => {
    await using core = await startCore();
    await core.core.deliveries.record(unmatched);
    expect(await core.core.deliveries.read("dlv_1")).toMatchObject({ outcome: "unmatched", operation: "chat.send" });
  });

  it.each([
    ["at once", () => refuse()],
    ["in its promise", async () => refuse()],
  ] as const)("never fails, also if the store fails %s, which is logged", async (_how, recordDelivery) => {
    await using core = await startCore({ wrapStore: broken(recordDelivery) });
    await core.core.deliveries.record(unmatched);
    expect(await core.logged("store.failed")).toMatchObject([{ operation: "record" }]);
  });

  it("finds no delivery for an id that was never used", async () => {
    await using core = await startCore();
    expect(await refusal(core.core.deliveries.get("dlv_2"))).toBe("delivery-not-found");
  });
});

function refuse(): never {
  throw new Error("the disk is gone");
}

describe("the headers of a delivery", () => {
  it("are found by their names, and repeated ones are joined", () => {
    const headers = "x-a: 1\nx-empty: \nx-a: 2\nx-b: a: b";
    expect(headersOf({ headers })).toEqual({ "x-a": "1, 2", "x-empty": "", "x-b": "a: b" });
    expect(headersOf({ headers: "" })).toEqual({});
  });

  it("are own properties, whatever their names", () => {
    const found = headersOf({ headers: "__proto__: x\nconstructor: y" });
    expect(Object.entries(found)).toEqual([
      ["__proto__", "x"],
      ["constructor", "y"],
    ]);
  });
});

describe("whether a delivery can be sent again", () => {
  const hook = { ...deliveryOf("dlv_1"), surface: "hooks", operation: "hooks.agent" } as const;

  it("is true for a webhook with a stored body, whatever its outcome", () => {
    for (const answer of ["accepted", "repeated", "unmatched", "refused"] as const)
      expect(whyNotReplayable({ ...hook, answer })).toBeUndefined();
    expect(whyNotReplayable({ ...hook, body: "" })).toBeUndefined();
  });

  it.each([
    ["is of REST or RPC", { ...hook, surface: "rpc" }, /only webhooks/],
    ["was a challenge", { ...hook, answer: "challenge" }, /nothing to do again/],
    ["is of an unauthenticated caller", { ...hook, caller: "", body: undefined }, /The sender was not authenticated/],
    ["was refused first", { ...hook, answer: "refused", body: undefined, bytes: 0 }, /before its body was read/],
    ["lost its body", { ...hook, body: undefined }, /recorder\.bodies was off, or the session was deleted/],
  ] as const)("is false for one that %s, with the reason", (_what, delivery, words) => {
    expect(whyNotReplayable(delivery)).toMatch(words);
  });
});

describe("headers that are never recorded", () => {
  it.each([
    "authorization",
    "proxy-authorization",
    "x-forwarded-authorization",
    "x-gateway-token",
    "cookie",
    "set-cookie",
    "webhook-signature",
    "svix-signature",
    "x-hub-signature",
    "x-hub-signature-256",
    "stripe-signature",
    "x-slack-signature",
    "x-gitlab-token",
    "x-shopify-hmac-sha256",
    "x-signature-ed25519",
    "x-api-key",
    "apikey",
    "x-auth-key",
    "x-access-key",
    "ocp-apim-subscription-key",
    "x-functions-key",
    "x-amz-security-token",
    "cf-access-jwt-assertion",
    "x-goog-iap-jwt-assertion",
    "x-client-secret",
    "x-csrf-token",
    "x-password",
    "sec-websocket-protocol",
    "x-forwarded-client-cert",
    "x-aws-credentials",
    "authentication-info",
  ])("include %s", (name) => expect(isSecretHeader(name)).toBe(true));

  it.each([
    "content-type",
    "idempotency-key",
    "x-github-event",
    "x-github-delivery",
    "webhook-id",
    "webhook-timestamp",
    "x-slack-request-timestamp",
    "user-agent",
    "traceparent",
    "x-request-id",
    "origin",
    "sec-websocket-key",
  ])("do not include %s", (name) => expect(isSecretHeader(name)).toBe(false));
});
