import { writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { loadConfig } from "#config/load.ts";
import { watchConfig } from "#config/watch.ts";
import { compileMapping, matchMapping } from "#core/mappings.ts";
import { folder, good, load, refusal, warned, withSections } from "./configs.ts";

function withMappings(mappings: Record<string, object>) {
  return {
    webhooks: {
      token: good(1),
      mappings: Object.fromEntries(
        Object.entries(mappings).map(([name, more]) => [name, { match: {}, message: "x", ...more }]),
      ),
    },
  };
}

test("a mapping that another one hides never matches if that one does not", async () => {
  const value = fc.constantFrom("1", "2", "3");
  const place = fc.constantFrom("body.a", "body.b", "headers.x-c", "headers.X-C");
  const match = fc.dictionary(place, fc.array(value, { minLength: 1, maxLength: 2 }), { maxKeys: 3 });
  const body = fc.record({ a: value, b: value }, { requiredKeys: [] });
  const none = { session: undefined, model: undefined, channel: undefined, to: undefined, thread: undefined };
  const rest = { name: "x", message: "x", agent: "main", coalesce: undefined, ...none };
  const seen = { hidden: 0, free: 0 };
  await fc.assert(
    fc.asyncProperty(match, match, fc.array(fc.tuple(body, value), { minLength: 5 }), async (early, late, sent) => {
      fc.pre(![early, late].some((pairs) => "headers.x-c" in pairs && "headers.X-C" in pairs));
      const compiled = [early, late].map((pairs) =>
        compileMapping({ ...rest, delivery: "none", verify: undefined, match: pairs }),
      );
      const warnings = await warned(withMappings({ early: { match: early }, late: { match: late } }));
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

test("a mapping has texts to compare with, whatever types the file has, and a list of secrets", async () => {
  const match = { "body.n": 1, "body.ok": true, "headers.x-event": ["push", 2] };
  const verified = (secret: unknown) => ({ match, verify: { type: "github", secret } });
  const text = withSections(withMappings({ one: verified(good(2)), two: verified([good(2), good(3)]) }));
  const { one, two } = (await load(text)).config.webhooks.mappings;
  expect(one?.match).toEqual({ "body.n": ["1"], "body.ok": ["true"], "headers.x-event": ["push", "2"] });
  expect([one?.verify?.secret, two?.verify?.secret]).toEqual([[good(2)], [good(2), good(3)]]);
});

test("a reload of an agent alone is refused if a mapping uses a model that the agent no longer has", async () => {
  const built = { stores: ["memory"], backends: ["echo", "http"] };
  const bare = { backend: "http", http: { url: "http://127.0.0.1:9/turns" } };
  const written = (model: string, main: object) =>
    withSections({
      agents: { main: { ...bare, model: "fast", ...main }, bare },
      gateway: { defaultAgent: "main" },
      ...withMappings({ push: { model } }),
    });
  const file = join(folder(), "gateway.json5");
  writeFileSync(file, written("deep", { models: ["deep"] }));
  const read = () => loadConfig({ file, env: {}, built });
  const nothing = { onChange: () => {}, onInvalid: () => {}, signal: AbortSignal.abort() };
  const watch = watchConfig({ running: await read(), load: read, ...nothing });
  writeFileSync(file, written("fast", {}));
  expect(await watch.reload("rpc", "main")).toMatchObject({
    reloaded: false,
    problems: [
      {
        key: "webhooks.mappings.push.model",
        message:
          "names a model that the agent `main` does not have; there is `fast`. The file may have changed since then: system.reload applies both.",
      },
    ],
  });
  expect(await watch.reload("rpc", "bare")).toMatchObject({ reloaded: true });
});

test("a burst and an address have the defaults of the schema, and durations in milliseconds", async () => {
  const text = withSections(
    withMappings({
      short: { coalesce: { key: "{body.n}" } },
      long: { coalesce: { key: "all", window: "1h", maxWait: "24h", take: "all" } },
    }),
  );
  const { short, long } = (await load(text)).config.webhooks.mappings;
  expect(short?.coalesce).toEqual({ key: "{body.n}", windowMs: 30_000, maxWaitMs: 300_000, take: "last" });
  expect(long?.coalesce).toEqual({ key: "all", windowMs: 3_600_000, maxWaitMs: 86_400_000, take: "all" });
});

test("a wrong template or burst is refused with its line and column", async () => {
  const text = `{
  agents: { main: { backend: "echo" } },
  webhooks: {
    token: "${good(1)}",
    mappings: {
      push: {
        match: {},
        message: "x",
        session: "webhook:{body.number}",
        coalesce: {
          key: "{body.number",
          windw: "3s",
        },
      },
    },
  },
}`;
  expect(await refusal(text)).toEqual([
    "gateway.json5:12:11: webhooks.mappings.push.coalesce.windw is not a key of webhooks.mappings.push.coalesce; did you mean `window`?",
  ]);
  expect(await refusal(text.replace("windw", "window"))).toEqual([
    "gateway.json5:9:18: webhooks.mappings.push.session must have more than `webhook:` before its first placeholder, for example `webhook:pr-{body.number}`: otherwise a request could choose any session.",
    "gateway.json5:11:16: webhooks.mappings.push.coalesce.key holds `{body.number`, which is not a placeholder: write {body.<path>} or {headers.<name>}, or {{ for a brace.",
  ]);
  const wait = text.replace("windw", "maxWait").replaceAll(/"(x|webhook:|\{body.number)[^"]*"/g, '"webhook:x"');
  expect(await refusal(wait.replace("3s", "0s"))).toEqual([
    "gateway.json5:12:20: webhooks.mappings.push.coalesce.maxWait must be a duration from `window` to `24h`, for example `5m`.",
  ]);
  expect(await refusal(wait.replace("maxWait", "window").replace("3s", "0s"))).toEqual([
    "gateway.json5:12:19: webhooks.mappings.push.coalesce.window must be a duration from `1s` to `1h`, for example `30s`.",
  ]);
  const long = text
    .replace("windw", "window")
    .replace("3s", "9m")
    .replace("{body.number}", "x")
    .replace("{body.number", "x");
  expect(await refusal(long)).toEqual([
    "gateway.json5:10:19: webhooks.mappings.push.coalesce.maxWait is shorter than `window`: a burst waits at least that long. By default it is `5m`.",
  ]);
});
