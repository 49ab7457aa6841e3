import { describe, expect, it } from "vitest";
import { shareGateway } from "#test/harness/gateway.ts";
import { deliveryOf, ended, stepOf, withMappings } from "./mapped-payloads.ts";

describe("a payload with a mapping's name", async () => {
  const gateway = await shareGateway({
    config: withMappings({
      everything: { match: {}, message: "{body.text}" },
      ci: { match: { "body.status": "failed" }, message: "{body.job} failed", session: "webhook:ci" },
      signed: { match: {}, message: "x", verify: { type: "github", secret: "a-secret-of-a-sender" } },
    }),
  });

  it("is tried with that mapping alone", async () => {
    const { hooks } = gateway;
    const reply = await hooks.named("ci", { status: "failed", job: "build" });
    expect(reply.json).toMatchObject({ mapping: "ci", sessionId: "webhook:ci", message: "turn started" });
    expect(await ended(gateway, reply)).toBe("build failed");
  });

  it("that does not match is 200 and nothing is started, as senders switch off an address that fails", async () => {
    const { hooks, gateway: inner } = gateway;
    const before = inner.store.stats().sessions;
    const reply = await hooks.named("ci", { status: "passed" });
    expect([reply.status, reply.json]).toEqual([
      200,
      { status: 200, message: "no mapping matched", deliveryId: expect.stringMatching(/^dlv_/) },
    ]);
    expect(inner.store.stats().sessions).toBe(before);
    const delivery = await deliveryOf(gateway, reply.json.deliveryId);
    expect(delivery).toMatchObject({
      outcome: "unmatched",
      status: 200,
      mapping: "ci",
      turn_id: null,
      session_id: null,
    });
    expect(stepOf(delivery, "mapping.tried")).toEqual({
      matched: null,
      tried: [{ mapping: "ci", path: "body.status", expected: ["failed"], found: "passed" }],
      untold: 0,
    });
  });

  it("whose message would say nothing calls no agent", async () => {
    const { hooks } = gateway;
    for (const body of [{}, { text: null }, { text: " \n" }, []]) {
      const { json } = await hooks.named("everything", body);
      expect(json).toMatchObject({ message: "no mapping matched" });
      const delivery = await deliveryOf(gateway, json.deliveryId);
      expect(stepOf(delivery, "mapping.tried")).toMatchObject({ tried: [{ path: "message", found: null }] });
    }
  });

  it("that nobody has is 404, with the shared token alone", async () => {
    const { hooks } = gateway;
    const reply = await hooks.named("nothing", {});
    expect([reply.status, reply.error, reply.problem.detail]).toEqual([
      404,
      "mapping-not-found",
      expect.stringMatching(/^No mapping is named `nothing`\. There are `/),
    ]);
    expect((await hooks.named("nothing", {}, { token: null })).status).toBe(401);
    for (const name of ["constructor", "__proto__", "everything/x", "Everything", "everything "])
      expect((await hooks.send(`/${encodeURI(name)}`, {})).status).toBe(404);
  });
});
