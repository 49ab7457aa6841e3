import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, test } from "vitest";
import { loadConfig } from "#config/load.ts";
import { watchConfig } from "#config/watch.ts";
import { folder, load, refused, withSections } from "./configs.ts";
import { AT, type Keys, one } from "./mappings.ts";

describe("a model", () => {
  const built = { stores: ["memory"], backends: ["echo", "http"] };
  const remote = { backend: "http", http: { url: "http://127.0.0.1:9/turns" } };
  const agents = { main: { ...remote, model: "fast", models: ["deep"] }, echo: { backend: "echo" } };
  const written = (mapping: Keys, more: Keys = {}) => ({
    agents: { ...agents, ...more },
    gateway: { defaultAgent: "main" },
    ...one(mapping),
  });

  it("that the agent does not know is refused by its name, before a request comes", async () => {
    expect(await refused(written({ model: "dep" }), { built })).toEqual([
      `${AT}.model names a model that the agent \`main\` does not know; did you mean \`deep\`?`,
    ]);
    expect(await refused(written({ model: "other-one" }), { built })).toEqual([
      `${AT}.model names a model that the agent \`main\` does not know; there are \`fast\`, \`deep\`.`,
    ]);
    const bare = { bare: remote };
    expect(await refused(written({ model: "fast", agent: "bare" }, bare), { built })).toEqual([
      `${AT}.model names a model that the agent \`bare\` does not know; it has no \`models\`.`,
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
    const bare = { bare: remote };
    writeFileSync(file, withSections(written({ model: "deep" }, bare)));
    const stop = new AbortController();
    stop.abort();
    const read = () => loadConfig({ file, env: {}, built });
    const nothing = { onChange: () => {}, onInvalid: () => {}, signal: stop.signal };
    const watch = watchConfig({ running: await read(), load: read, ...nothing });
    writeFileSync(file, withSections(written({ model: "fast" }, { main: { ...remote, model: "fast" }, ...bare })));
    expect(await watch.reload("rpc", "main")).toMatchObject({
      reloaded: false,
      problems: [
        {
          key: `${AT}.model`,
          message:
            "names a model that the agent `main` does not know; there is `fast`. The file may say otherwise by now: system.reload takes both.",
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
