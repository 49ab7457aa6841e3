import { describe, expect, it, test } from "vitest";
import { good, load, refusal, refused, withSections } from "./configs.ts";
import { AT, matching } from "./mappings.ts";

describe("a path that leads nowhere is refused with the mapping's name and the reason", () => {
  test.each([
    ["body.a..b", "has an empty step: between two dots stands a key or an index."],
    ["body. a", "has a step that begins or ends with a space."],
    ["body.__proto__.admin", "leads nowhere: `__proto__` is never read."],
    [`body${".a".repeat(65)}`, "is deeper than a body can be, which is 64 levels."],
    ["headers.x y", "names a header that no request can have."],
    ["headers.:method", "names a header that no request can have."],
    ["headers.Authorization", "names a header that may hold a secret: mappings never read those."],
    ["headers.x-hub-signature-256", "names a header that may hold a secret: mappings never read those."],
  ])("%s", async (path, reason) => {
    expect(await refused(matching({ [path]: "x" }))).toEqual([`${AT}.match[${JSON.stringify(path)}] ${reason}`]);
  });

  test.each(["query.x", "body", "body.a.", "x"])("%s, which is no path at all", async (path) => {
    const [line] = await refused(matching({ [path]: "x" }));
    expect(line).toContain("must be a place in the request, `headers.<name>` or `body.<dotted path>`, for example");
  });

  it("with its file and line", async () => {
    const text = `{
      agents: { main: { backend: "echo" } },
      webhooks: { mappings: {
        "good": { match: {}, message: "x" },
        "github-push": {
          match: { "headers.cookie": "a" },
          message: "{body.a..b}",
        },
      } },
    }`;
    expect(await refusal(text)).toEqual([
      'gateway.json5:6:20: webhooks.mappings.github-push.match["headers.cookie"] names a header that may hold a secret: mappings never read those.',
      "gateway.json5:7:20: webhooks.mappings.github-push.message holds {body.a..b}, which has an empty step: between two dots stands a key or an index.",
    ]);
  });
});

describe("a value that nothing has as its text is refused", () => {
  test.each([[[]], [null], [[null]], [{ a: 1 }], [[["x"]]]])("%j", async (value) => {
    expect(await refused(matching({ "body.v": value }))).not.toEqual([]);
  });

  test.each([" push", "push ", "two\nlines", "\u0000", "日本"])("%j of a header", async (value) => {
    expect(await refused(matching({ "headers.x-event": value }))).toEqual([
      `${AT}.match["headers.x-event"] can never match: no header has such a value, or one with a space around it.`,
    ]);
  });

  it("a media type that no webhook has", async () => {
    expect(
      await refused(matching({ "headers.Content-Type": ["text/plain", "application/x-www-form-urlencoded"] })),
    ).toEqual([`${AT}.match["headers.Content-Type"] can never match: webhooks are taken as application/json alone.`]);
    await load(withSections(matching({ "headers.content-type": ["application/json", "text/plain"] })));
    await load(withSections(matching({ "headers.content-type": "application/json; charset=utf-8" })));
  });

  it("but not where another of the list can be", async () => {
    await load(withSections(matching({ "headers.x-event": ["push", " push"], "body.v": ["null", "", "[]"] })));
  });

  test.each(["", "push", "a b", "caf\u00e9", "a\tb"])("%j of a header is taken", async (value) => {
    await load(withSections(matching({ "headers.x-event": value })));
  });
});

describe("pairs that cannot both be equal are refused", () => {
  it("a value, and something below it", async () => {
    expect(await refused(matching({ "body.a.b": "x", "body.a": "text" }))).toEqual([
      `${AT}.match["body.a.b"] can never match together with \`body.a\`: when that one matches, this one has another value.`,
    ]);
    expect(
      await refused(matching({ "body.a": ['{"b":"y"}', '{"c":"x"}', "[1]", "[1"], "body.a.b": "x" })),
    ).toHaveLength(1);
  });

  it("but not where the value holds it", async () => {
    await load(withSections(matching({ "body.a": ["text", '{"b":["x"]}'], "body.a.b.0": ["w", "x"] })));
    await load(withSections(matching({ "body.a": "1", "body.ab": "2", "body.b.a": "3" })));
  });

  it("one header in two cases", async () => {
    expect(await refused(matching({ "headers.x-event": "a", "headers.X-Event": "b" }))).toEqual([
      `${AT}.match["headers.X-Event"] is the same place as headers.x-event: write it once.`,
    ]);
  });

  it("Slack's handshake, which is answered before", async () => {
    const slack = { verify: { type: "slack", secret: good(2) } };
    expect(await refused(matching({ "body.type": "url_verification" }, slack))).toEqual([
      `${AT}.match["body.type"] can never match: Slack's url_verification is answered before mappings are tried.`,
    ]);
    await load(withSections(matching({ "body.type": ["url_verification", "event_callback"] }, slack)));
    await load(withSections(matching({ "body.type": "url_verification" })));
  });
});
