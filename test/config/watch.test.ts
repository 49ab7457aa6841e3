// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { EventEmitter, once } from "node:events";
import { copyFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Config } from "#config/config.ts";
import { loadConfig } from "#config/load.ts";
import type { ConfigError } from "#config/problems.ts";
import { type Reload, type ReloadCause, watchConfig } from "#config/watch.ts";
import { built, folder, good, withSections } from "./configs.ts";

function described(description: string, more: object = {}) {
  return withSections({ agents: { main: { backend: "echo", description } }, ...more });
}

/** A file, its watch, and the watch's notifications, as events to wait for. */
async function watched(
  text = described("first"),
  { name = "gateway.json5", env = {} as NodeJS.ProcessEnv, failing = (): Error | undefined => undefined } = {},
) {
  const here = folder();
  const file = join(here, name);
  writeFileSync(file, text);
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const told = new EventEmitter();
  const configs: Config[] = [];
  const unchanged: string[] = [];
  const load = async () => {
    const fault = failing();
    if (fault) throw fault;
    return await loadConfig({ file, env, built });
  };
  const watch = watchConfig({
    running: await load(),
    load,
    onChange: (config, reload, cause) => {
      configs.push(config);
      told.emit("change", config, reload, cause);
    },
    onUnchanged: () => unchanged.push("unchanged"),
    onInvalid: (error, cause) => told.emit("invalid", error, cause),
    signal: stop.signal,
    pollMs: 10,
  });
  const changed = () => once(told, "change") as Promise<[Config, Reload, ReloadCause]>;
  const refused = async () => ((await once(told, "invalid")) as [ConfigError])[0];
  return { here, file, watch, changed, refused, configs, unchanged, stop };
}

function says(config: Config) {
  return config.agents.main?.description;
}

describe("a changed file", () => {
  test("is refused if it cannot be read for an unexpected reason, and is still watched", async () => {
    let fault: Error | undefined;
    const { file, watch, changed, refused } = await watched(described("first"), { failing: () => fault });
    fault = new TypeError("x is undefined");
    const refusal = refused();
    writeFileSync(file, described("second"));
    expect((await refusal).message).toContain("could not be read: TypeError: x is undefined");
    expect(says(watch.config)).toBe("first");
    fault = undefined;
    const change = changed();
    writeFileSync(file, described("third"));
    expect(says((await change)[0])).toBe("third");
  });

  test("takes effect at once if it was changed in place", async () => {
    const { file, watch, changed } = await watched();
    const change = changed();
    writeFileSync(file, described("second"));
    const [config, reload, cause] = await change;
    expect(cause).toBe("file");
    expect(says(config)).toBe("second");
    expect(watch.config).toBe(config);
    expect(reload).toMatchObject({ reloaded: true, changed: ["agents.main.description"], needsRestart: [] });
  });

  test("takes effect if another file replaced it, again and again", async () => {
    const { here, file, changed } = await watched();
    for (const text of ["second", "third", "fourth"]) {
      const change = changed();
      writeFileSync(join(here, ".new"), described(text));
      renameSync(join(here, ".new"), file);
      expect(says((await change)[0])).toBe(text);
    }
  });

  test("takes effect behind a link that changes, as in a cluster", async () => {
    const { here, file, changed } = await watched();
    writeFileSync(join(here, "v2"), described("second"));
    const change = changed();
    symlinkSync(join(here, "v2"), join(here, ".link"));
    renameSync(join(here, ".link"), file);
    expect(says((await change)[0])).toBe("second");
  });

  test("is read completely: each configuration is one that was written", async () => {
    const { file, watch, configs, changed } = await watched();
    const long = (n: number) => described(`${n}`.repeat(200_000), { limits: { turns: n } });
    for (let n = 1; n <= 5; n++) {
      const change = changed();
      writeFileSync(file, long(n));
      await change;
    }
    for (const config of configs) {
      const n = config.limits.turns;
      expect(says(config)).toBe(`${n}`.repeat(200_000));
      expect(Object.isFrozen(config)).toBe(true);
    }
    expect(watch.config.limits.turns).toBe(5);
  });

  test("without a relevant change causes nothing", async () => {
    const { file, watch, configs } = await watched();
    writeFileSync(file, `// a word\n${described("first")}`);
    expect(await watch.reload("signal")).toMatchObject({ reloaded: true, changed: [] });
    expect(configs).toEqual([]);
  });

  test("with a change that needs a restart says so, and the current values remain in force", async () => {
    const { file, changed } = await watched();
    const change = changed();
    writeFileSync(file, described("second", { gateway: { port: 1 }, webhooks: { path: "/in" } }));
    const [config, reload] = await change;
    expect(reload).toMatchObject({
      changed: ["agents.main.description"],
      needsRestart: ["gateway.port", "webhooks.path"],
    });
    expect(config.gateway.listeners[0]?.port).toBe(18789);
    expect(config.webhooks.path).toBe("/hooks");
  });

  test("is not watched any more after the signal", async () => {
    const { file, configs, stop, watch } = await watched();
    stop.abort();
    writeFileSync(file, described("second"));
    await watch.reload("signal");
    expect(configs).toHaveLength(1);
  });
});

describe("a broken file leaves the last valid one in force", () => {
  const twice = {
    gateway: { rpc: { auth: { tokens: [1, 2].map((n) => ({ name: `t${n}`, token: good(1), permissions: "*" })) } } },
  };
  const lines = (sections: object) => JSON.stringify(JSON.parse(described("second", sections)), null, 1);

  test.each([
    [
      "syntax",
      "{\n agents: {\n",
      "gateway.json5:3:1: the file is not JSON5: the text ends too early: close what is open.",
    ],
    [
      "an unknown key",
      lines({ recrder: {} }),
      "gateway.json5:8:2: recrder is not a key of the configuration; did you mean `recorder`?",
    ],
    [
      "a variable that is not set",
      lines({ webhooks: { token: "${NOT_SET}" } }),
      "gateway.json5:9:12: webhooks.token refers to the variable NOT_SET, which is not set: set it.",
    ],
    [
      "a bad mapping",
      lines({ webhooks: { mappings: { push: { match: {}, message: "x", agent: "nobody" } } } }),
      "gateway.json5:13:14: webhooks.mappings.push.agent names an agent that is not configured; there is `main`.",
    ],
    [
      "the same token twice",
      lines(twice),
      "gateway.json5:19:16: gateway.rpc.auth.tokens[1].token is the same token as gateway.rpc.auth.tokens[0].token: remove one, or give each its own.",
    ],
  ])("%s", async (_, text, said) => {
    const { here, file, watch, changed, refused, configs } = await watched();
    const refusal = refused();
    writeFileSync(file, text);
    const error = await refusal;
    expect(error.message.replaceAll(`${here}/`, "")).toBe(said);
    expect(says(watch.config)).toBe("first");
    expect(configs).toEqual([]);

    expect(await watch.reload("signal")).toEqual({
      reloaded: false,
      changed: [],
      needsRestart: [],
      warnings: [],
      problems: error.problems,
    });
    const change = changed();
    writeFileSync(file, described("corrected"));
    expect(says((await change)[0])).toBe("corrected");
  });

  test("as does a deleted one", async () => {
    const { file, watch, refused, changed } = await watched();
    const refusal = refused();
    rmSync(file);
    expect((await refusal).message).toMatch(
      /the file cannot be read: it does not exist\. Create it, or name another one\.$/,
    );
    expect(says(watch.config)).toBe("first");
    const change = changed();
    writeFileSync(file, described("back"));
    expect(says((await change)[0])).toBe("back");
  });
});

describe("a requested reload", () => {
  test("of one agent changes only that agent", async () => {
    const agent = (description: string) => ({ backend: "echo", description });
    const both = (description: string, turns: number) =>
      withSections({
        gateway: { defaultAgent: "a" },
        agents: { a: agent(description), b: agent(description) },
        limits: { turns },
      });
    const { file, watch, stop } = await watched(both("first", 1));
    stop.abort();
    writeFileSync(file, both("second", 2));
    expect(await watch.reload("rpc", "a")).toMatchObject({ changed: ["agents.a.description"], needsRestart: [] });
    expect(watch.config.agents).toMatchObject({ a: { description: "second" }, b: { description: "first" } });
    expect(watch.config.limits.turns).toBe(1);
    writeFileSync(file, withSections({ agents: { b: agent("second") } }));
    expect(await watch.reload("rpc", "a")).toMatchObject({
      reloaded: false,
      problems: [{ key: "agents.a", message: "is no longer in the file: system.reload removes it." }],
    });
    expect(says({ agents: { main: watch.config.agents.a } } as unknown as Config)).toBe("second");
  });

  test("is answered each time, in order, if there are many at once", async () => {
    const { file, watch, unchanged } = await watched();
    writeFileSync(file, described("second"));
    const reloads = await Promise.all([watch.reload("signal"), watch.reload("signal"), watch.reload("signal")]);
    expect(reloads.map(({ changed }) => changed.length)).toEqual([1, 0, 0]);
    // One that finds no change tries failing endpoints again.
    expect(unchanged).toHaveLength(2);
  });

  test("without a file changes nothing, and no secret", async () => {
    const running = await loadConfig({ env: {}, built, folder: folder() });
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    const load = () => loadConfig({ env: {}, built, folder: folder() });
    const watch = watchConfig({
      running,
      load,
      onChange: () => expect.unreachable(),
      onInvalid: () => {},
      signal: stop.signal,
    });
    expect(await watch.reload("signal")).toEqual({
      reloaded: true,
      changed: [],
      needsRestart: [],
      warnings: [],
      problems: [],
    });
    expect(watch.config).toBe(running.config);
  });
});

test("reads a renewed certificate again, in place", async () => {
  const here = folder();
  const file = join(here, "gateway.json5");
  for (const name of ["cert.pem", "key.pem"]) copyFileSync(join("test/config/tls", name), join(here, name));
  const listeners = [{ port: 1, tls: { cert: "cert.pem", key: "key.pem" } }];
  writeFileSync(file, described("first", { gateway: { listeners } }));

  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const load = () => loadConfig({ file, env: {}, built });
  const running = await load();
  const renewed = new Promise<[Config, Reload]>((resolve, onInvalid) => {
    const onChange = (config: Config, reload: Reload) => resolve([config, reload]);
    watchConfig({ running, load, onChange, onInvalid, signal: stop.signal, pollMs: 10 });
  });
  writeFileSync(join(here, "cert.pem"), `renewed\n${running.config.gateway.listeners[0]?.tls?.cert}`);
  const [config, { changed }] = await renewed;
  expect(changed).toEqual(["gateway.listeners[0].tls"]);
  expect(config.gateway.listeners[0]?.tls?.cert).toMatch(/^renewed/);
});
