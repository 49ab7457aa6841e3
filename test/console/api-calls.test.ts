import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { effectOfCall, requestOf, restCalls, rpcCalls, whyNotCallable } from "#console/lib/api-calls.ts";

function specOf(file: string) {
  return JSON.parse(readFileSync(new URL(`../../generated/${file}`, import.meta.url), "utf8"));
}
const calls = [...restCalls(specOf("openapi.json")), ...rpcCalls(specOf("openrpc.json"))];
function callOf(id: string) {
  const found = calls.find((call) => call.id === id);
  if (!found) throw new Error(`there is no ${id}`);
  return found;
}

describe("the calls of the gateway's own specs", () => {
  it("all have an id, a path and a summary, and every body is JSON", () => {
    for (const { id, path, summary, bodies } of calls) {
      expect(
        [id, path, summary].every((text) => text !== ""),
        id,
      ).toBe(true);
      for (const { text } of bodies) expect(() => JSON.parse(text), id).not.toThrow();
    }
    expect(new Set(calls.map(({ id }) => id)).size).toBe(calls.length);
  });

  it("have the spec's examples, with resolved references", () => {
    expect(callOf("turns.get").params).toMatchObject([{ name: "turn_id", in: "path", isRequired: true }]);
    expect(callOf("deliveries.list").params.find(({ name }) => name === "surface")?.options).toContain('"hooks"');
    expect(JSON.parse(callOf("agent.status").bodies[0]?.text ?? "")).toEqual({
      jsonrpc: "2.0",
      id: 1,
      method: "agent.status",
      params: { agentName: "main" },
    });
  });

  it("name the callers that may not use them", () => {
    const why = (id: string, kind: "console" | "admin" | "rpc") =>
      whyNotCallable(callOf(id), {
        kind: kind === "admin" ? "key" : kind,
        name: "ops",
        permissions: kind === "rpc" ? ["agent.list"] : [],
        agents: null,
        token: "a-token",
      });
    expect([why("chat.send", "console"), why("chat.send", "admin"), why("ops.healthz", "admin")]).toEqual([
      undefined,
      undefined,
      undefined,
    ]);
    expect(why("keys.list", "admin")).toContain("Only the console token");
    expect([why("identity.get", "rpc"), why("agent.list", "rpc"), why("session.delete", "rpc")]).toEqual([
      undefined,
      undefined,
      "Needs the permission session.delete.",
    ]);
    expect([why("chat.send", "rpc"), why("ops.metrics", "rpc"), why("ops.metrics", "console")]).toEqual([
      expect.stringContaining("RPC tokens can't use this"),
      "Needs the permission system.health.",
      undefined,
    ]);
    expect([why("agent.list", "console"), why("agent.list", "admin")]).toEqual([
      undefined,
      expect.stringContaining("API keys can't use this"),
    ]);
    expect(why("hooks.wake", "console")).toContain("webhook token");
    for (const who of ["console", "admin"] as const)
      expect(why("codes.redeem", who)).toBe(
        "Needs a sign-in code instead of a token. codes.create creates a code; the console redeems it when its link is opened.",
      );
    expect([why("codes.create", "console"), why("codes.create", "admin")]).toEqual([undefined, undefined]);
  });

  it("distinguish calls that change something from calls that only read", () => {
    const reading = [
      "deliveries.list",
      "turns.events",
      "mappings.dryRun",
      "mappings.backtest",
      "agent.list",
      "system.health",
      "usage.stats",
    ];
    const changing = [
      "chat.send",
      "keys.revoke",
      "turns.cancel",
      "deliveries.replay",
      "session.delete",
      "agent.reload",
    ];
    expect(reading.filter((id) => effectOfCall(callOf(id)) !== undefined)).toEqual([]);
    expect(changing.filter((id) => effectOfCall(callOf(id)) === undefined)).toEqual([]);
  });
});

describe("a request from a filled form", () => {
  it("has the path, the query, the headers and the body", () => {
    expect(requestOf(callOf("deliveries.list"), { surface: '"hooks"', id: "a b&c", mapping: "" }, "")).toEqual({
      method: "GET",
      path: "/api/v1/deliveries?surface=hooks&id=a+b%26c",
      headers: {},
      body: undefined,
    });
    expect(requestOf(callOf("turns.get"), { turn_id: "../keys" }, "")).toMatchObject({
      path: "/api/v1/turns/..%2Fkeys",
    });
    expect(requestOf(callOf("chat.send"), { "Idempotency-Key": "k1" }, "{}")).toMatchObject({
      headers: { "content-type": "application/json", "idempotency-key": "k1" },
      body: "{}",
    });
  });

  it("names the parameter that is missing", () => {
    expect(requestOf(callOf("turns.get"), {}, "")).toEqual({ missing: "turn_id" });
  });
});
