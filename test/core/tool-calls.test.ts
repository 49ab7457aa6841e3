import { describe, expect, it } from "vitest";
import { ToolCalls } from "#core/turns/tool-calls.ts";
import { showToolCalls } from "#kit/tool-calls.ts";
import { createRedactor } from "#observe/redact.ts";

const SECRET = "a-value-of-the-configuration";
const redactor = createRedactor();
redactor.hide([SECRET]);
const options = { isContentStored: true, hide: redactor.text };
const AT = Date.parse("2026-11-21T08:54:31.123Z");

function add(detail: object, calls = new ToolCalls(), more: Partial<typeof options> = {}) {
  return calls.add({ tool: "t", ok: true, ms: 23, ...detail }, AT + 23, { ...options, ...more });
}
function contentOf(value: unknown): string {
  return String(add({ arguments: value }).arguments);
}

describe("the content of a tool call", () => {
  it("has the start of the call, its arguments as JSON and its result", () => {
    const calls = new ToolCalls();
    const content = { arguments: '{"a":1}', result: "[1, 2]" };
    const shown = { tool: "t", ok: true, ms: 23, at: "2026-11-21T08:54:31.123Z", ...content };
    expect(add({ arguments: { a: 1 }, result: "[1, 2]", characters: 6 }, calls)).toEqual({ ...shown, characters: 6 });
    expect(calls.list).toEqual([{ tool: "t", ok: true, ms: 23, at: AT, ...content }]);
    expect(showToolCalls(calls.list ?? [])).toEqual([shown]);
  });

  it("has the arguments and the reason for a failed call", () => {
    const calls = new ToolCalls();
    add({ ok: false, reason: "no", arguments: { a: 1 } }, calls);
    expect(calls.list).toEqual([{ tool: "t", ok: false, ms: 23, at: AT, reason: "no", arguments: '{"a":1}' }]);
  });

  it("is absent if content is not stored", () => {
    const calls = new ToolCalls();
    const shown = add({ arguments: { a: 1 }, result: "r" }, calls, { isContentStored: false });
    expect(Object.keys(shown).sort()).toEqual(["at", "ms", "ok", "tool"]);
    expect(calls.list).toEqual([{ tool: "t", ok: true, ms: 23, at: AT }]);
  });

  it("is cut at 4 KiB of UTF-8, between characters, with a mark", () => {
    expect(contentOf("x".repeat(4096))).toBe("x".repeat(4096));
    expect(contentOf("x".repeat(4097))).toBe(`${"x".repeat(4096)}…`);
    expect(contentOf("é".repeat(9_000_000))).toBe(`${"é".repeat(2048)}…`);
    expect(contentOf(`x${"🙂".repeat(2000)}`)).toBe(`x${"🙂".repeat(1023)}…`);
  });

  it("has complete characters and the characters that control a terminal", () => {
    expect(contentOf("\ud83d a \udc00")).toBe("\ufffd a \ufffd");
    expect(contentOf(`${"x".repeat(4095)}\ud83d\ude42`)).toBe(`${"x".repeat(4095)}…`);
    expect(contentOf("\u0000\u001b[2J\u202e")).toBe("\u0000\u001b[2J\u202e");
    expect(contentOf({ "\u202e": "\u0000" })).toBe('{"\u202e":"\\u0000"}');
  });

  it("is bounded for all calls together; a call that does not fit has none", () => {
    const calls = new ToolCalls();
    for (let n = 0; n < 150; n++) add({ arguments: "x".repeat(4000), result: "y".repeat(4000) }, calls);
    add({ arguments: "small" }, calls);
    const list = calls.list ?? [];
    expect(list).toHaveLength(100);
    expect(list.map(({ result }) => result !== undefined).lastIndexOf(true)).toBe(7);
    expect(Buffer.byteLength(JSON.stringify(list))).toBeLessThan(80_000);
  });

  it("does not have secrets of the configuration, also where the cut is within one", () => {
    const base64 = Buffer.from(SECRET).toString("base64");
    expect(contentOf({ a: SECRET, b: base64 })).toBe('{"a":"[hidden]","b":"[hidden]=="}');
    for (const form of [SECRET, base64]) expect(contentOf("x".repeat(4080) + form)).toMatch(/^x+\[hidden\]/);
  });

  it.each([
    ['{"a":1,"password":"x\\"y","b":2}', '{"a":1,"password":"[hidden]","b":2}'],
    ['{"password":"x\\\\","b":2}', '{"password":"[hidden]","b":2}'],
    ['{"api_key": 123, "b":2}', '{"api_key": "[hidden]", "b":2}'],
    ['{"cookies":["a","b]"],"b":2}', '{"cookies":"[hidden]","b":2}'],
    ['{"secret":{"a":{"c":"}"}},"b":2}', '{"secret":"[hidden]","b":2}'],
    ['{"clientSecret":"abc', '{"clientSecret":"[hidden]"'],
    ['{"secret":{"abc', '{"secret":"[hidden]"'],
    ['{"t":"{\\"token\\":\\"a\\\\\\"c\\",\\"b\\":1}"}', '{"t":"{\\"token\\":\\"[hidden]\\",\\"b\\":1}"}'],
    ["curl -H 'Authorization: Bearer abcdefgh1234'", "curl -H 'Authorization: [hidden]'"],
    ["sk-live-0123456789", "[hidden]"],
    ["the basic token is good", "the basic token is good"],
  ])("hides secrets by the name of their field, in JSON at any depth and cut anywhere: %s", (text, clean) => {
    expect(contentOf(text)).toBe(clean);
  });

  it("hides a secret that the end of the searched part divides, and ends with a mark", () => {
    const field = `{"password":"${"p".repeat(17_000)}","rest":"`;
    for (const filled of [field + "x".repeat(20_480 - field.length - 9), `Bearer ${"b".repeat(20_464)} `]) {
      const content = contentOf(`${filled}${SECRET} and more`);
      expect(content).not.toContain(SECRET.slice(0, 6));
      expect(content).toMatch(/…$/);
    }
  });

  it("has a mark wherever a text was cut", () => {
    expect(contentOf(`{"token":"${"x".repeat(1_000_000)}"}`)).toBe('{"token":"[hidden]"…');
    expect(contentOf({ token: "x".repeat(1_000_000), b: 1 })).toBe('{"token":"[hidden]"…');
    expect(contentOf({ list: Array(1_000_000).fill(0) })).toMatch(/^\{"list":\[0,0,.*0?,?…$/);
    expect(contentOf(JSON.parse("[".repeat(50_000) + "]".repeat(50_000)))).toMatch(/^\[+\]+…$/);
    const calls = new ToolCalls();
    add({ ok: false, reason: "r".repeat(1000) }, calls);
    expect(calls.list?.[0]?.reason).toBe(`${"r".repeat(499)}…`);
  });

  it("reads only the beginning of arguments", () => {
    let read = 0;
    const counting = new Proxy(Array(1_000_000).fill("x".repeat(100)), {
      get: (target, name, self) => {
        read++;
        return Reflect.get(target, name, self);
      },
    });
    expect(contentOf(counting)).toMatch(/…$/);
    expect(read).toBeLessThan(10_000);
  });

  it("is not read once the room for all calls is used up", () => {
    const calls = new ToolCalls();
    for (let n = 0; n < 10; n++) add({ arguments: "x".repeat(4000), result: "y".repeat(4000) }, calls);
    const unread = new Proxy({}, { ownKeys: () => expect.fail("was read") });
    expect(add({ arguments: unread }, calls)).not.toHaveProperty("arguments");
  });

  it("ends for every text of quotes, brackets and backslashes", () => {
    for (const piece of ["\\", '"', '"token":"', '"token":[', '"token":\\', '"token":{"\\'])
      expect(contentOf(`{"token":${piece.repeat(30_000)}`).length).toBeGreaterThan(0);
  });
});
