import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { mainSessionOf, placeOf, placeOfChat } from "#core/sessions/sessions.ts";

function idOf(userId: string, channel?: string, agent = "main") {
  return placeOf({ agent, channel, userId }, "rpc", "ops").sessionId;
}
function hashed(part: string) {
  return `~${createHash("sha256").update(part).digest("base64url")}`;
}

describe("the session of a message", () => {
  it("is the named session", () => {
    const options = { agent: "main", sessionId: "my session", channel: "web", userId: "ada" };
    expect(placeOf(options, "rpc", "ops")).toEqual({
      sessionId: "my session",
      agent: "main",
      channel: "web",
      userId: "ada",
    });
  });

  it("is the session of agent, channel and user, by default of the surface and the token", () => {
    expect(placeOf({ agent: "main", channel: "web", userId: "ada" }, "rpc", "ops")).toEqual({
      sessionId: "agent:main:web:ada",
      agent: "main",
      channel: "web",
      userId: "ada",
    });
    expect(placeOf({ agent: "main" }, "rpc", "ops")).toEqual({
      sessionId: "agent:main:rpc:ops",
      agent: "main",
      channel: "rpc",
      userId: "ops",
    });
  });

  it("is a new conversation for a chat without session and user", () => {
    const place = placeOfChat({ agent: "main" }, "ci", 1_000);
    expect(place).toEqual({
      sessionId: expect.stringMatching(/^chat:[0-9A-Z]{26}$/),
      agent: "main",
      channel: "rest",
      userId: "ci",
    });
    expect(placeOfChat({ agent: "main" }, "ci", 1_000).sessionId).not.toBe(place.sessionId);
  });

  it("is the user's or the named session for a chat that names one", () => {
    expect(placeOfChat({ agent: "main", userId: "ada" }, "ci", 0).sessionId).toBe("agent:main:rest:ada");
    const named = placeOfChat({ agent: "main", sessionId: "s" }, "ci", 0);
    expect(named).toMatchObject({ sessionId: "s", userId: "ci", channel: "rest" });
  });

  it("is the main session for heartbeats, which no channel or user can reach", () => {
    expect(mainSessionOf("main")).toBe("agent:main:main");
    expect(idOf("", "main")).not.toBe(mainSessionOf("main"));
    expect(idOf("main", "", "main")).not.toBe(mainSessionOf("main"));
  });
});

describe("session ids", () => {
  it("encode every part, so that no two sessions share one id", () => {
    const places: [string, string][] = [
      ["a:b", "c"],
      ["a", "b:c"],
      ["a%3Ab", "c"],
      ["a b", "c"],
      ["a+b", "c"],
      ["a", "ü"],
      ["a", "%C3%BC"],
      ["a", ""],
      ["a", "~"],
      ["a", "%7E"],
      ["a", "🙂"],
    ];
    const ids = places.map(([channel, userId]) => idOf(userId, channel));
    expect(new Set(ids).size).toBe(ids.length);
    expect(idOf("b:c", "a")).toBe("agent:main:a:b%3Ac");
  });

  it("are printable ASCII of at most 256 characters, whatever the parts are", () => {
    const parts = ["a", " ", "\u0000", "ü", "🙂", "\ud800", "%", "~", "漢"];
    for (const user of parts) {
      for (const channel of parts) {
        const id = idOf(user.repeat(128 / user.length), channel.repeat(64 / channel.length), "m".repeat(64));
        expect(id).toMatch(/^[!-~]{1,256}$/);
      }
    }
  });

  it("have a hash in place of the user if they would be longer than 256 characters", () => {
    const fits = "ü".repeat(40);
    expect(idOf(fits)).toBe(`agent:main:rpc:${encodeURIComponent(fits)}`);
    const room = 256 - "agent:main:rpc:".length;
    expect(idOf("u".repeat(room))).toBe(`agent:main:rpc:${"u".repeat(room)}`);
    expect(idOf("u".repeat(room + 1))).toBe(`agent:main:rpc:${hashed("u".repeat(room + 1))}`);
    const long = "漢".repeat(128);
    expect(idOf(long)).toBe(`agent:main:rpc:${hashed(long)}`);
    expect(idOf(long)).toMatch(/^agent:main:rpc:~[A-Za-z0-9_-]{43}$/);
    expect(idOf(`${long.slice(1)}字`)).not.toBe(idOf(long));
  });

  it("also have a hash in place of the channel if the channel is too long", () => {
    const channel = "漢".repeat(64);
    expect(idOf("ada", channel)).toBe(`agent:main:${hashed(channel)}:${hashed("ada")}`);
    expect(idOf("ada", channel)).not.toBe(idOf("bob", channel));
    expect(idOf("ada", channel)).not.toBe(idOf("ada", `${channel.slice(1)}字`));
  });

  it("cannot be reached by a user whose name looks like the hash of another", () => {
    const long = "漢".repeat(128);
    expect(idOf(hashed(long))).not.toBe(idOf(long));
    expect(idOf(hashed(long))).toBe(`agent:main:rpc:%7E${hashed(long).slice(1)}`);
    expect(idOf("~ü")).toBe("agent:main:rpc:%7E%C3%BC");
    expect(idOf("a~")).toBe("agent:main:rpc:a~");
  });
});
