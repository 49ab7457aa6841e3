import { describe, expect, it } from "vitest";
import { type Identity, nameOf, refusalOf, whyNoConsole, whyNot } from "#console/lib/identity.ts";

function who(kind: Identity["kind"], ...permissions: string[]): Identity {
  return { kind, name: "ops", permissions, agents: null, token: "a-token" };
}

describe("whyNot", () => {
  it("is undefined for all rights of the console token, and of an RPC token with all permissions for RPC", () => {
    for (const right of ["rest", "keys", "session.delete"] as const)
      expect(whyNot(who("console", "*"), right)).toBeUndefined();
    expect(whyNot(who("rpc", "*"), "session.delete")).toBeUndefined();
  });

  it("names the missing permission", () => {
    expect(whyNot(who("rpc", "session.list"), "session.list")).toBeUndefined();
    expect(whyNot(who("rpc", "session.list"), "session.delete")).toBe("Needs the permission session.delete.");
    expect(whyNot(who("rpc", "*"), "rest")).toContain("RPC tokens can't use this");
    expect(whyNot(who("key"), "session.list")).toContain("API keys can't use this");
    for (const kind of ["key", "rpc"] as const) expect(whyNot(who(kind, "*"), "keys")).toContain("Only the console");
  });
});

it("refuses what concerns all agents to a token that is limited to some", () => {
  const limited = { ...who("rpc", "*"), agents: ["main"] };
  for (const right of ["gateway.stream", "agent.reload", "system.reload", "*.*"] as const) {
    expect(whyNot(limited, right)).toContain("limited to some agents");
    expect(whyNot(who("rpc", "*"), right)).toBeUndefined();
  }
  for (const right of ["agent.list", "session.delete", "system.health"] as const)
    expect(whyNot(limited, right)).toBeUndefined();
  expect(whyNot(who("rpc", "system.health"), "gateway.stream")).toBeUndefined();
  expect(whyNot(who("rpc", "agent.list"), "gateway.stream")).toBe("Needs the permission system.health.");
});

it("refuses a chat key and an RPC token without a permission for the console, by name", () => {
  expect(whyNoConsole(who("key"), ["chat"])).toContain("The API key `ops` has the scope `chat`.");
  expect(whyNoConsole(who("rpc", "system.health"), [])).toContain(
    "The RPC token `ops` has no permission for the console.",
  );
  expect(whyNoConsole(who("key"), ["admin"])).toBeUndefined();
  expect(whyNoConsole(who("rpc", "usage.stats"), [])).toBeUndefined();
});

it("distinguishes an expired key from an unknown token", () => {
  const type = "/docs/errors.html#key-expired";
  const detail = "The key `my ` laptop` expired at 2026-11-01T00:00:00.000Z. Make a new one.";
  expect(refusalOf(401, { type, detail }, null)).toMatch(/^The key `my ` laptop` expired on 1 Nov 2026\. Sign in/);
  expect(refusalOf(401, { detail }, null)).toBe("Unknown token.");
  expect(refusalOf(401, {}, "12")).toContain("wait 12 s");
  expect(refusalOf(503, { detail: "The database is away." }, null)).toBe("The database is away.");
});

it("names an identity", () => {
  expect(["console", "key", "rpc"].map((kind) => nameOf(who(kind as Identity["kind"])))).toEqual([
    "the console token",
    "the API key ops",
    "the RPC token ops",
  ]);
});
