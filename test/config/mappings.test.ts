import { writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { loadConfig } from "#config/load.ts";
import { watchConfig } from "#config/watch.ts";
import { compileMapping, matchMapping } from "#core/mappings.ts";
import { folder, good, load, warned, withSections } from "./configs.ts";

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
  const rest = { name: "x", message: "x", agent: "main", session: undefined, model: undefined, channel: undefined };
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
