import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { fillTemplate, parseTemplate, type Template } from "#kit/mapping-template.ts";

function sound(text: string): Template {
  const template = parseTemplate(text);
  if ("flaw" in template) throw new Error(`${text} ${template.flaw}`);
  return template;
}
function fill(text: string, body: unknown, headers: Record<string, string> = {}, limit = 1_000_000) {
  return fillTemplate(sound(text), { headers, body }, limit);
}

describe("a template", () => {
  const body = JSON.parse(
    '{"a": {"b": "x"}, "items": [{"id": 7}], "no": null, "on": true, "key with space": "s", "huge": 1e400, "empty": "", "key|odd": "bar", "text": "{body.a.b} {{ {headers.x}"}',
  ) as unknown;

  test.each([
    ["plain", "plain"],
    ["{body.a.b}", "x"],
    ["<{body.a.b}{body.items.0.id}>", "<x7>"],
    ["{headers.X-Event}: {body.on}", "push: true"],
    ["[{body.missing}{body.no}{body.huge}{headers.x-none}]", "[]"],
    ["{body.a} {body.items}", '{"b":"x"} [{"id":7}]'],
    ["{body.key with space}", "s"],
    ["{{", "{"],
    ["}", "}"],
    ["}}", "}}"],
    ['{{"event": "{headers.x-event}"}', '{"event": "push"}'],
    ["{{{body.a.b}}", "{x}"],
    ["{{{{", "{{"],
    ["{{body.a.b}}", "{body.a.b}}"],
    ["{body.text}", "{body.a.b} {{ {headers.x}"],
    ["{body.missing|body.a.b}", "x"],
    ["{body.a.b|body.on}", "x"],
    ["{body.no|body.huge|headers.x-event|body.on}", "push"],
    ["[{body.missing|body.no}]", "[]"],
    ["{body.a|b|body.on}", "true"],
    ["{body.key|odd}", "bar"],
    ["{body.empty|body.on}", "true"],
    ["$" + "{body.items.0.id}", "$7"],
    ["two\nlines {body.a.b}\n", "two\nlines x\n"],
  ])("%j gives %j", (text, message) => {
    expect(fill(text, body, { "x-event": "push" })).toBe(message);
  });

  test.each([
    ["{foo}", "{foo}"],
    ["a {", "{"],
    ["{body.a", "{body.a"],
    ["{body}", "{body}"],
    ["{headers}", "{headers}"],
    ["{}", "{}"],
    ["{ body.a}", "{ body.a}"],
    ['{"json": 1}', '{"json": 1}'],
    ["{body.a{body.b}}", "{body.a"],
    ["{body.a\n}", "{body.a"],
    ["{{}{x}", "{x}"],
    [`{${"x".repeat(60)}}`, `{${"x".repeat(20)}`],
  ])("%j is refused for %j", (text, shown) => {
    expect(parseTemplate(text)).toEqual({
      flaw: `holds \`${shown}\`, which is not a placeholder: write {body.<path>} or {headers.<name>}, or {{ for a brace.`,
    });
  });

  test.each([
    [
      "{headers.authorization}",
      "holds {headers.authorization}, which names a header that may hold a secret: mappings never read those.",
    ],
    ["{body.a..b}", "holds {body.a..b}, which has an empty step: write a key or an index between two dots."],
    ["{body.__proto__}", "holds {body.__proto__}, which can never match: `__proto__` is never read."],
    [
      "{body.a|headers.cookie}",
      "holds {headers.cookie}, which names a header that may hold a secret: mappings never read those.",
    ],
    ["{body.a | body.b}", "holds {body.a | body.b}, which has a space next to `|`: write {body.a|body.b}."],
    ["{body.a| body.b}", "holds {body.a| body.b}, which has a space next to `|`: write {body.a|body.b}."],
    ["{body.a|body.}", "holds {body.}, which has an empty step: write a key or an index between two dots."],
    ["{body.a }", "holds {body.a }, which has a step that begins or ends with a space."],
  ])("%j is refused like an invalid path", (text, flaw) => {
    expect(parseTemplate(text)).toEqual({ flaw });
  });

  it("gives every text when its braces are doubled", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(..."{}ab.\n$ body headers") }), (text) => {
        expect(fill(text.replaceAll("{", "{{"), {})).toBe(text);
      }),
    );
  });

  it("repeats the input exactly", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.string({ unit: fc.constantFrom(..."ab {}") }), (sent, around) => {
        const literal = around.replaceAll("{", "{{");
        expect(fill(`${literal}{body.text}${literal}`, { text: sent })).toBe(around + sent + around);
      }),
    );
  });

  it("is either refused or filled in, whatever the template and the input are", () => {
    const piece = fc.constantFrom(
      "{",
      "}",
      "{{",
      "{body.",
      "{headers.",
      "a",
      ".",
      "0",
      "__proto__",
      "x-a",
      "}",
      " ",
      "\n",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.jsonValue(), (pieces, body) => {
        const template = parseTemplate(pieces.join(""));
        if ("flaw" in template) expect(template.flaw).toMatch(/^holds .*\.$/s);
        else expect(typeof fillTemplate(template, { headers: { "x-a": "1" }, body }, 1_000)).toBe("string");
      }),
    );
  });

  it("is filled in up to its limit, exactly to the character", () => {
    expect(fill("{body.text}{body.text}", { text: "12345" }, {}, 10)).toBe("1234512345");
    expect(fill("{body.text}{body.text}.", { text: "12345" }, {}, 10)).toBeUndefined();
  });

  it("with thousands of places for a large body stops at its limit", () => {
    const text = "{body.all}".repeat(6_000);
    expect(fill(text, { all: { text: "x".repeat(250_000) } }, {}, 1024 ** 2)).toBeUndefined();
  });
});
