import { describe, expect, it, test } from "vitest";
import { good, load, refused, warned, withSections } from "./configs.ts";
import { AT, type Keys, one, rule, rules } from "./mappings.ts";

describe("a message", () => {
  test.each([
    ["{foo}", "holds `{foo}`, which is no placeholder: write {body.<path>} or {headers.<name>}, or {{ for a brace."],
    [
      "{headers.cookie}",
      "holds {headers.cookie}, which names a header that may hold a secret: mappings never read those.",
    ],
    ["{body.a.}", "holds {body.a.}, which has an empty step: between two dots stands a key or an index."],
    [" \n\t", "is blank: write what the agent is told."],
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

describe("a session", () => {
  const agents = { main: { backend: "echo" }, other: { backend: "echo" } };
  const shared = (second: Keys) => ({
    agents,
    gateway: { defaultAgent: "main" },
    ...rules({
      push: rule({ match: { "body.v": "1" }, session: "webhook:ci" }),
      pull: rule({ match: { "body.v": "2" }, session: "webhook:ci", ...second }),
    }),
  });

  it("of mappings of two agents is refused, as a session has one", async () => {
    expect(await refused(shared({ agent: "other" }))).toEqual([
      "webhooks.mappings.pull.session is also the session of the mapping push, which has another agent, and a session has one agent: give them two sessions, or one agent.",
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
      `${AT}.delivery is \`announce\`, but there is no channel to announce to, so replies reach subscribers alone: set \`channel\` or \`gateway.announceTo\`.`,
    ]);
    expect(await warned({ channels, ...one({ delivery: "announce", channel: "opz" }) })).toEqual([
      `${AT}.channel names a channel that is not configured; did you mean \`ops\`? Until then, announcements of this mapping reach subscribers alone.`,
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

describe("a mapping without `verify`", () => {
  const mappings = { signed: rule({ verify: { type: "github", secret: good(2) } }), open: rule() };

  it("that nobody has a token for is refused", async () => {
    expect(await refused({ webhooks: { mappings } })).toEqual([
      "webhooks.mappings.open can be reached by nobody: set `webhooks.token`, or give it `verify`.",
    ]);
  });

  it("is taken where there is one, or where webhooks are off", async () => {
    await load(withSections({ webhooks: { mappings, token: good(1) } }));
    await load(withSections({ webhooks: { mappings, enabled: false } }));
    await load(withSections({ webhooks: { mappings: { open: rule() } } }));
  });
});
