import { expect, it } from "vitest";
import { createMappings } from "#core/mappings.ts";
import type { CoreSettings } from "#core/settings.ts";
import { skillsFolder, skillText } from "#test/harness/skills.ts";
import { startCore, type TestCore } from "./start-core.ts";

const SKILLS = skillsFolder({ apple: skillText("apple", "Peels apples.") });

/** A configuration with this agent, a mapping of its name for it, and a skill. */
function settingsOf(core: TestCore, name: string): CoreSettings {
  const mapping = { name, match: {}, message: "hi", agent: name, session: undefined, model: undefined };
  const places = { to: undefined, thread: undefined, coalesce: undefined };
  const rest = { channel: undefined, delivery: "none", verify: undefined, ...places } as const;
  const mappings = [{ ...mapping, ...rest }];
  return {
    ...core.settingsWith([{ name, backend: core.scripted.backend }]),
    skillDirs: [SKILLS],
    mappings: createMappings({ mappings, path: "/hooks", longestMessage: 100, recordBodies: true }),
  };
}

function inForce({ core }: TestCore) {
  return {
    agents: core.agents.list().map(({ name }) => name),
    mapping: core.settings().mappings.choose({ headers: {}, body: {} }, undefined).chosen?.mapping.name,
    skills: core.skills.ids(),
  };
}

it("a new configuration takes effect all at once, after its skills are read", async () => {
  await using core = await startCore();
  const old = { agents: ["main"], mapping: undefined, skills: [] };
  const seen: unknown[] = [];
  const done = core.core.reconfigure(settingsOf(core, "new"), () => seen.push(inForce(core)));
  expect(inForce(core)).toEqual(old);
  await done;
  expect(seen).toEqual([{ agents: ["new"], mapping: "new", skills: ["apple"] }]);
  expect(inForce(core)).toEqual(seen[0]);
});

it("the last of several concurrent configurations remains", async () => {
  await using core = await startCore();
  const seen: string[] = [];
  const names = ["one", "two", "three"];
  await Promise.all(names.map((name) => core.core.reconfigure(settingsOf(core, name), () => seen.push(name))));
  expect(seen).toEqual(names);
  expect(inForce(core)).toMatchObject({ agents: ["three"], mapping: "three" });
});

it("a configuration does not wait for the cleanup of an earlier one in a slow store", async () => {
  let answer = () => {};
  const slow = new Promise<void>((resolve) => (answer = resolve));
  await using core = await startCore({
    wrapStore: (store) => ({
      failQueuedTurns: async (...of) => {
        await slow;
        return store.failQueuedTurns(...of);
      },
    }),
  });
  const first = core.core.reconfigure(settingsOf(core, "one"));
  const second = await new Promise<unknown>((resolve, reject) => {
    core.core.reconfigure(settingsOf(core, "two"), () => resolve(inForce(core))).catch(reject);
  });
  expect(second).toMatchObject({ agents: ["two"], mapping: "two" });
  answer();
  await first;
});
