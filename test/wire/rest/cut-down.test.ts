import { describe, expect, test } from "vitest";
import openapi from "#generated/openapi.json" with { type: "json" };
import { SECRETS, shareGateway } from "#test/harness/gateway.ts";
import { openConnection, requestText } from "#test/harness/raw.ts";
import { bodySchemaIn, cutDown, MOST_TOLD, namedIn } from "#wire/rest/contract-faults.ts";

const gateway = await shareGateway({});
const CHAT = { method: "POST", path: "/api/v1/chat/send" };
function cut(body: unknown, place = CHAT) {
  return cutDown(structuredClone(body), bodySchemaIn(openapi, place), namedIn(openapi)) as Record<string, unknown>;
}
function unknown(count: number) {
  return Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, n]));
}

describe("a body that is shortened for its refusal", () => {
  test.each([
    ["plain", { message: "hi" }],
    ["long where it may be", { message: "x".repeat(100_000) }],
    ["as large as the contract allows", { message: "hi", skill_ids: Array.from({ length: 64 }, () => "a".repeat(64)) }],
    ["wrong in a few places", { message: 1, skill_ids: [1, 2], session_id: "é", ...unknown(MOST_TOLD) }],
    ["no object", [1, 2, 3]],
    ["null", null],
    ["of other types", { message: ["x"], skill_ids: { length: 1e9 }, session_id: null }],
  ])("is unchanged: %s", (_, body) => {
    expect(cut(body)).toEqual(body);
  });

  test("still has the fault that it is refused for", () => {
    const { skill_ids, session_id, message, ...rest } = cut({
      ...unknown(5_000),
      message: "hi",
      skill_ids: Array.from({ length: 5_000 }, () => "x".repeat(5_000)),
      session_id: "é".repeat(5_000),
    });
    expect(message).toBe("hi");
    expect(Object.keys(rest)).toEqual(Object.keys(unknown(MOST_TOLD)));
    expect(skill_ids).toEqual(Array.from({ length: MOST_TOLD }, () => "x".repeat(130)));
    expect(session_id).toBe("é".repeat(514));
  });

  test("has its free-form fields unchanged", () => {
    const params = { ...unknown(5_000), list: Array.from({ length: 5_000 }, () => "x".repeat(500)) };
    const body = { skill_id: "tell", params };
    expect(cut(body, { method: "POST", path: "/api/v1/skills/trigger" })).toEqual(body);
  });

  test("changes no prototype by a name", () => {
    const body = JSON.parse(`{"message":"hi","__proto__":{"a":1},${JSON.stringify(unknown(200)).slice(1)}`) as object;
    expect(Object.hasOwn(cut(body), "__proto__")).toBe(true);
    expect(({} as { a?: number }).a).toBeUndefined();
  });
});

describe("the fault of a body that is far too large", () => {
  const refusalOf = async (body: object) => {
    await using connection = await openConnection(gateway.url);
    const headers = { authorization: `Bearer ${SECRETS.key}`, "content-type": "application/json" };
    connection.write(requestText(CHAT, headers, JSON.stringify(body)));
    return (await connection.reply(CHAT)).problem;
  };

  test("names a list or a text that is too long", async () => {
    const skill_ids = Array.from({ length: 5_000 }, () => "x".repeat(65));
    expect(await refusalOf({ message: "hi", skill_ids })).toMatchObject({
      detail: "skill_ids must have at most 64 entries.",
    });
    expect(await refusalOf({ message: "hi", session_id: "x".repeat(50_000) })).toMatchObject({
      detail: "session_id must have at most 256 characters.",
    });
  });
});
