import { writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { loadConfig } from "#config/load.ts";
import { watchConfig } from "#config/watch.ts";
import { compileMapping, matchMapping } from "#core/mappings.ts";
import { folder, good, load, refusal, refused, warned, withSections } from "./configs.ts";

type Written = Record<string, unknown>;
const rule = (more: Written = {}): Written => ({ match: {}, message: "said", ...more });
const rules = (mappings: Record<string, Written>, more: Written = {}) => ({
  webhooks: { token: good(1), mappings, ...more },
});
const one = (more: Written, webhooks: Written = {}) => rules({ push: rule(more) }, webhooks);
const matching = (match: Written, more: Written = {}) => one({ match, ...more });
const AT = "webhooks.mappings.push";

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
    expect(line).toContain("has a name that cannot be. A lookup path is `headers.<name>` or `body.<dotted path>`.");
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
      `${AT}.match["body.a.b"] can never match beside body.a, which has another value then.`,
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

describe("a message", () => {
  test.each([
    ["{foo}", "holds `{foo}`, which is no placeholder: write {body.<path>} or {headers.<name>}, or {{ for a brace."],
    [
      "{headers.cookie}",
      "holds {headers.cookie}, which names a header that may hold a secret: mappings never read those.",
    ],
    ["{body.a.}", "holds {body.a.}, which has an empty step: between two dots stands a key or an index."],
    [" \n\t", "is blank: it would tell the agent nothing."],
  ])("%j is refused", async (message, reason) => {
    expect(await refused(one({ message }))).toEqual([`${AT}.message ${reason}`]);
  });

  it("with the braces of another language is warned of", async () => {
    expect(await warned(one({ message: "{{body.who}} pushed {body.what}" }))).toEqual([
      `${AT}.message holds {{body.who}}, which stands for the text {body.who}}: write {body.who} to have it filled in.`,
    ]);
    expect(await warned(one({ message: '{{"who": "{body.who}"}' }))).toEqual([]);
  });
});

describe("a model", () => {
  const built = { stores: ["memory"], backends: ["echo", "model"] };
  const agents = { main: { backend: "model", model: "fast", models: ["deep"] }, echo: { backend: "echo" } };
  const written = (mapping: Written, more: Written = {}) => ({
    agents: { ...agents, ...more },
    gateway: { defaultAgent: "main" },
    ...one(mapping),
  });

  it("that the agent does not know is refused by its name, before a request comes", async () => {
    expect(await refused(written({ model: "dep" }), { built })).toEqual([
      `${AT}.model names a model that the agent \`main\` does not know; did you mean \`deep\`?`,
    ]);
    expect(await refused(written({ model: "other-one" }), { built })).toEqual([
      `${AT}.model names a model that the agent \`main\` does not know; it knows \`fast\`, \`deep\`.`,
    ]);
    const bare = { bare: { backend: "model" } };
    expect(await refused(written({ model: "fast", agent: "bare" }, bare), { built })).toEqual([
      `${AT}.model names a model that the agent \`bare\` does not know; it knows none.`,
    ]);
  });

  test.each([{ model: "fast" }, { model: "deep" }, {}, { model: "anything", agent: "echo" }])(
    "%j is taken",
    async (mapping) => {
      await load(withSections(written(mapping)), { built });
    },
  );

  it("that the agent no longer knows refuses a reload of that agent alone, as its mapping goes on", async () => {
    const file = join(folder(), "gateway.json5");
    const bare = { bare: { backend: "model" } };
    writeFileSync(file, withSections(written({ model: "deep" }, bare)));
    const stop = new AbortController();
    stop.abort();
    const read = () => loadConfig({ file, env: {}, built });
    const nothing = { onChange: () => {}, onInvalid: () => {}, signal: stop.signal };
    const watch = watchConfig({ running: await read(), load: read, ...nothing });
    writeFileSync(
      file,
      withSections(written({ model: "fast" }, { main: { backend: "model", model: "fast" }, ...bare })),
    );
    expect(await watch.reload("rpc", "main")).toMatchObject({
      reloaded: false,
      problems: [
        {
          key: `${AT}.model`,
          message:
            "names a model that the agent `main` does not know; it knows `fast`. The file may say otherwise by now: system.reload takes both.",
        },
      ],
    });
    expect(await watch.reload("rpc", "bare")).toMatchObject({ reloaded: true });
    expect(await watch.reload("rpc")).toMatchObject({ reloaded: true });
    expect(await watch.reload("rpc", "main")).toMatchObject({ reloaded: true });
  });

  test.each(["nobody", "constructor", "mian"])("of the agent %s, which is not there, is one fault", async (agent) => {
    const lines = await refused(one({ agent, model: "fast" }));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatch(new RegExp(`^${AT}.agent names an agent that is not configured; `));
  });
});

describe("a session", () => {
  const agents = { main: { backend: "echo" }, other: { backend: "echo" } };
  const shared = (second: Written) => ({
    agents,
    gateway: { defaultAgent: "main" },
    ...rules({
      push: rule({ match: { "body.v": "1" }, session: "webhook:ci" }),
      pull: rule({ match: { "body.v": "2" }, session: "webhook:ci", ...second }),
    }),
  });

  it("of mappings of two agents is refused, as a session has one", async () => {
    expect(await refused(shared({ agent: "other" }))).toEqual([
      "webhooks.mappings.pull.session is the session of the mapping push, whose agent is another one: a session has one agent.",
    ]);
  });

  it("of mappings of one agent is taken", async () => {
    await load(withSections(shared({ agent: "main" })));
    await load(withSections(shared({})));
  });
});

describe("where announcements go", () => {
  const channels = { ops: { type: "webhook", url: "https://hooks.example.com", secret: good(3) } };

  it("nowhere is warned of", async () => {
    expect(await warned({ channels, ...one({ delivery: "announce" }) })).toEqual([
      `${AT}.delivery has no channel to go to: without \`channel\` and gateway.announceTo, replies reach subscribers alone.`,
    ]);
    expect(await warned({ channels, ...one({ delivery: "announce", channel: "opz" }) })).toEqual([
      `${AT}.channel is not among \`channels\`, so announcements of this mapping reach subscribers alone.`,
    ]);
  });

  test.each([
    [{ channel: "ops" }, {}],
    [{}, { announceTo: "ops" }],
    [{ channel: "a label" }, { announceTo: "ops" }],
    [{ delivery: "none" }, {}],
  ])("%j with %j is not", async (mapping, gateway) => {
    expect(await warned({ channels, gateway, ...one({ delivery: "announce", ...mapping }) })).toEqual([]);
  });
});

describe("a mapping that another one hides", () => {
  const wide = rule({ match: { "body.v": ["1", "2"] } });
  const hidden = (reached = "/hooks") =>
    `webhooks.mappings.late is never tried at ${reached}: early, before it, matches all that it does; it is reached at ${reached}/late alone. Put it first if it is meant to be tried.`;

  test.each([
    [rule(), rule({ match: { "body.v": "1" } })],
    [rule(), rule()],
    [wide, rule({ match: { "body.v": 1, "headers.x-a": "b" } })],
    [rule({ match: { "headers.X-A": "b" } }), rule({ match: { "headers.x-a": "b", "body.v": true } })],
  ])("%j before %j is warned of", async (early, late) => {
    expect(await warned(rules({ early, late }))).toEqual([hidden()]);
    expect(await warned(rules({ early, late }, { path: "/in/x" }))).toEqual([hidden("/in/x")]);
  });

  test.each([
    [wide, rule({ match: { "body.v": ["1", "3"] } })],
    [wide, rule({ match: { "body.w": "1" } })],
    [wide, rule()],
    [rule({ match: { "body.v": "1", "body.w": "1" } }), rule({ match: { "body.v": "1" } })],
    [rule({ verify: { type: "github", secret: good(2) } }), rule()],
    [rule(), rule({ verify: { type: "github", secret: good(2) } })],
  ])("%j before %j is not", async (early, late) => {
    expect(await warned(rules({ early, late }))).toEqual([]);
  });

  it("never matches what the one before it does not", async () => {
    const value = fc.constantFrom("1", "2", "3");
    const place = fc.constantFrom("body.a", "body.b", "headers.x-c", "headers.X-C");
    const match = fc.dictionary(place, fc.array(value, { minLength: 1, maxLength: 2 }), { maxKeys: 3 });
    const body = fc.record({ a: value, b: value }, { requiredKeys: [] });
    const seen = { hidden: 0, free: 0 };
    await fc.assert(
      fc.asyncProperty(match, match, fc.array(fc.tuple(body, value), { minLength: 5 }), async (early, late, sent) => {
        fc.pre(![early, late].some((pairs) => "headers.x-c" in pairs && "headers.X-C" in pairs));
        const compiled = [early, late].map((pairs) => compileMapping({ ...COMPILED, match: pairs }));
        const warnings = await warned(rules({ early: rule({ match: early }), late: rule({ match: late }) }));
        seen[warnings.length > 0 ? "hidden" : "free"]++;
        if (warnings.length === 0) return;
        for (const [of, c] of sent) {
          const [first, second] = compiled.map((each) => !matchMapping(each, { body: of, headers: { "x-c": c } }));
          if (second) expect(first).toBe(true);
        }
      }),
      { numRuns: 60 },
    );
    expect(seen.hidden).toBeGreaterThan(0);
    expect(seen.free).toBeGreaterThan(0);
  });
});

const COMPILED = {
  name: "x",
  message: "x",
  agent: "main",
  session: undefined,
  model: undefined,
  channel: undefined,
  delivery: "none",
  verify: undefined,
} as const;

describe("a mapping without `verify`", () => {
  const mappings = { signed: rule({ verify: { type: "github", secret: good(2) } }), open: rule() };

  it("that nobody has a token for is refused", async () => {
    expect(await refused({ webhooks: { mappings } })).toEqual([
      "webhooks.mappings.open can be reached by nobody: without `verify` it takes webhooks.token, which is not set.",
    ]);
  });

  it("is taken where there is one, or where webhooks are off", async () => {
    await load(withSections({ webhooks: { mappings, token: good(1) } }));
    await load(withSections({ webhooks: { mappings, enabled: false } }));
    await load(withSections({ webhooks: { mappings: { open: rule() } } }));
  });
});

test("the order of the file is the order in which they are tried", async () => {
  const names = ["zebra", "alpha", "mid-2", "mid-10", "a1"];
  const mappings = Object.fromEntries(names.map((name, n) => [name, rule({ match: { "body.v": n } })]));
  expect(Object.keys((await load(withSections(rules(mappings)))).config.webhooks.mappings)).toEqual(names);
});
