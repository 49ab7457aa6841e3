import { Marked } from "marked";
import { describe, expect, test } from "vitest";
import { isSafeLink, PARSE, renderer } from "#console/lib/markdown.ts";

function markup(text: string): string {
  return new Marked({ renderer }).parse(text, PARSE).trim();
}

describe("Markdown from outside", () => {
  test("shows markup as text", () => {
    expect(markup("<img src=x onerror=alert(1)>")).toBe("&lt;img src=x onerror=alert(1)&gt;");
    expect(markup("a <script>alert(1)</script> b")).toBe("<p>a &lt;script&gt;alert(1)&lt;/script&gt; b</p>");
  });

  test("shows a picture as a link", () => {
    expect(markup("![cat](https://example.com/a.png)")).toBe('<p><a href="https://example.com/a.png">cat</a></p>');
    expect(markup("![cat](data:image/png;base64,AA)")).toBe("<p>cat</p>");
  });

  test("shows only the text of a link that may not be followed", () => {
    expect(markup("[a **b**](javascript:alert(1))")).toBe("<p>a <strong>b</strong></p>");
    expect(markup("[a](https://example.com/?x=1&y=2)")).toBe('<p><a href="https://example.com/?x=1&amp;y=2">a</a></p>');
  });

  test("shows a task without a control", () => {
    expect(markup("- [x] done\n- [ ] open")).not.toContain("<input");
  });

  test.each([
    ["https://example.com/a?b=c", true],
    ["mailto:ada@example.com", true],
    ["javascript:alert(1)", false],
    ["JaVaScRiPt:alert(1)", false],
    ["data:text/html,x", false],
    ["/console/settings", false],
    ["//example.com", false],
    ["https://", false],
  ])("follows %s: %s", (href, expected) => {
    expect(isSafeLink(href)).toBe(expected);
  });
});
