import { describe, expect, test } from "vitest";
import { errors } from "#generated/errors.ts";
import { methods } from "#generated/methods.ts";
import { reference } from "#generated/reference.js";
import { routes } from "#generated/routes.ts";
import { inline, prose } from "../../scripts/generate/reference/words.ts";

const ids = new Set([...reference.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id as string));

describe("the reference", () => {
  test("has a place for each operation, method and error", () => {
    const places = [
      ...routes.map(({ operation }) => operation),
      ...Object.keys(methods),
      ...Object.keys(errors).map((name) => `error-${name}`),
    ];
    expect(places.filter((place) => !ids.has(place))).toEqual([]);
  });

  test("has no place twice, and no link that leads nowhere", () => {
    expect([...reference.matchAll(/ id="/g)]).toHaveLength(ids.size);
    const links = [...reference.matchAll(/ href="([^"]+)"/g)].map(([, link]) => link as string);
    expect(links.length).toBeGreaterThan(300);
    const elsewhere = ["/openapi.json", "/openrpc.json"];
    expect(links.filter((link) => !ids.has(link.slice(1)) && !elsewhere.includes(link))).toEqual([]);
  });

  test("is small, as it is sent whole", () => {
    expect(Buffer.byteLength(reference)).toBeLessThan(360_000);
  });
});

test("words of the specs are text, whatever they hold", () => {
  expect(inline('<b onclick="x">&</b>')).toBe("&lt;b onclick=&quot;x&quot;&gt;&amp;&lt;/b&gt;");
  expect(inline("**Turns.** a *turn* of `a * b * <c>`, 2 * 3 * 4")).toBe(
    "<strong>Turns.</strong> a <em>turn</em> of <code>a * b * &lt;c&gt;</code>, 2 * 3 * 4",
  );
  expect(prose("One\nline.\n\n- a\n- b\n  more")).toBe("<p>One line.</p>\n<ul><li>a</li><li>b more</li></ul>");
});
