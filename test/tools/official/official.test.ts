import { resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { systemClock } from "#kit/clock.ts";
import type { ServerSettings } from "#tools/mcp/connection.ts";
import { open } from "../open-tools.ts";
import { type Revision, serveHttp } from "./http.ts";

const PROGRAM = resolve("test/tools/official/program.mjs");

type Kind = { over: "HTTP" | "stdio"; revision: Revision; era: string };

/** The servers, and the revision by which each is used. */
const KINDS: readonly Kind[] = [
  { over: "HTTP", revision: "2026-07-28", era: "modern" },
  { over: "HTTP", revision: "2025-11-25", era: "old" },
  { over: "HTTP", revision: "both", era: "modern" },
  { over: "stdio", revision: "2026-07-28", era: "modern" },
  { over: "stdio", revision: "2025-11-25", era: "old" },
  { over: "stdio", revision: "both", era: "legacy" },
];

async function serve({ over, revision }: Kind) {
  if (over === "HTTP") return await serveHttp(revision);
  const reach: ServerSettings["reach"] = {
    type: "stdio",
    run: [process.execPath, PROGRAM, revision],
    cwd: ".",
    env: {},
  };
  return { reach, async [Symbol.asyncDispose]() {} };
}

describe.each(KINDS)("an official MCP server of $revision over $over", (kind) => {
  it("is listed and called, with structured results, errors and notifications", async () => {
    await using server = await serve(kind);
    await using files = open(server.reach, { callMs: 10_000 });
    expect(await files.names()).toEqual(
      ["era", "add", "fail", "throw", "slow", "grow", "ask"].map((name) => `files__${name}`),
    );
    expect(await files.call("era")).toBe(kind.era);
    expect(await files.call("add", { a: 1, b: 2 })).toBe('{"sum":3}');
    await expect(files.call("fail")).rejects.toThrow("There is no such customer.");
    await expect(files.call("throw")).rejects.toThrow("The quota is used up.");
    await expect(files.call("add", { a: "one" })).rejects.toThrow(/Invalid arguments|validation/i);
    expect(await files.call("slow", { ms: 1_200, notices: 20 })).toBe("done");
    expect(files.failures).toEqual([]);
  });

  it("has its changed list read again", async () => {
    await using server = await serve(kind);
    await using files = open(server.reach);
    expect(await files.names()).not.toContain("files__more");
    expect(await files.call("grow")).toBe("grown");
    await expect.poll(() => files.names(), { timeout: 5_000 }).toContain("files__more");
    expect(await files.call("more")).toBe("more");
  });

  it("is refused its questions", async () => {
    await using server = await serve(kind);
    await using files = open(server.reach);
    await expect(files.call("ask")).rejects.toThrow(/elicitation/);
    expect(await files.call("add", { a: 1, b: 2 })).toBe('{"sum":3}');
  });

  it("continues after a call that takes too long", async () => {
    await using server = await serve(kind);
    await using files = open(server.reach, { callMs: 300 });
    await expect(files.call("slow", { ms: 60_000, notices: 0 })).rejects.toThrow("it did not answer in time");
    expect(await files.call("add", { a: 1, b: 2 })).toBe('{"sum":3}');
    expect(files.failures).toEqual([]);
  });
});

describe("an official MCP server over HTTP that is started again", () => {
  it.each([
    ["2026-07-28", "2026-07-28"],
    ["2025-11-25", "2025-11-25"],
    ["2025-11-25", "2026-07-28"],
    ["2026-07-28", "2025-11-25"],
    ["both", "2025-11-25"],
  ] as const)("is called at once: first of %s, then of %s", async (before, after) => {
    const first = await serveHttp(before);
    await using files = open(first.reach);
    expect(await files.call("add", { a: 1, b: 2 })).toBe('{"sum":3}');
    await first[Symbol.asyncDispose]();
    await expect(files.call("add", { a: 1, b: 2 })).rejects.toThrow("The call failed: it c");
    await using second = await serveHttp(after, first.port);
    expect(await files.call("add", { a: 2, b: 2 })).toBe('{"sum":4}');
    expect(second.methods.length).toBeGreaterThan(0);
  });

  it("has its list read again when the subscription is renewed", async () => {
    const first = await serveHttp("2026-07-28");
    // Pauses are over at once.
    const clock = {
      ...systemClock,
      after: (ms: number, fire: () => void) => systemClock.after(ms === 1_000 ? 1 : ms, fire),
    };
    await using files = open(first.reach, { clock });
    await files.names();
    await expect.poll(() => first.methods).toContain("subscriptions/listen");
    await first[Symbol.asyncDispose]();
    await using second = await serveHttp("2026-07-28", first.port);
    await files.call("grow");
    await expect.poll(() => files.names(), { timeout: 10_000 }).toContain("files__more");
    expect(second.methods).toContain("subscriptions/listen");
  });
});
