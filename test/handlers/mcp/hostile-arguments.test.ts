import { describe, expect, it } from "vitest";
import { ADMIN, refusal, startTools } from "./start-tools.ts";

/** Deeper than any schema describes, for a recursive validator. */
const DEEP = JSON.parse(`${'{"a":'.repeat(60)}1${"}".repeat(60)}`) as object;

/** Arguments that JSON can hold, and that no tool expects. */
const HOSTILE: readonly unknown[] = [
  [],
  "text",
  7,
  true,
  JSON.parse('{"__proto__":{"message":"hi"},"constructor":{"prototype":{}}}'),
  { message: ["hi"], turn_id: {}, agent_name: [], agentName: 1e308, delivery_id: "../..", limit: 1e9, cursor: "" },
  { message: "\ud800", session: "\u0000", turn_id: "turn_\u202e", agent_name: "a/../b", delivery_id: "%2e%2e" },
  { turn_id: "x".repeat(100_000) },
  { delivery_id: "x".repeat(100_000) },
  { agent_name: "x".repeat(100_000) },
  { turn_id: "x".repeat(100_000), delivery_id: "x".repeat(100_000), agent_name: "x".repeat(100_000) },
  Object.fromEntries(Array.from({ length: 5_000 }, (_, n) => [`field${n}`, n])),
  DEEP,
  { message: DEEP, body: DEEP, params: DEEP },
  { body: null, headers: { a: 1 }, mapping: { message: 5 } },
  { from: "now", to: {}, groupBy: "everything", wait_seconds: "50" },
];

describe("hostile arguments", () => {
  it.each(HOSTILE.map((args, n) => [n, args]))("of the kind %i get an answer from every tool", async (_, args) => {
    await using made = await startTools({ mcp: { operator: "write" } });
    for (const name of await made.names(ADMIN)) {
      const answer = made.call(name, args, { caller: ADMIN, waitMs: 0 });
      const { name: error } = await refusal(answer);
      expect(["no error", "forbidden"], `${name}: ${error}`).toContain(error);
      expect(((await answer)?.text ?? "").length, name).toBeLessThan(4_000);
    }
    expect({}).not.toHaveProperty("message");
  });
});
