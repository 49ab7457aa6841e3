import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { BUILT } from "#gateway/gateway.ts";
import { built, folder, load, refusal, refused, withSections } from "./configs.ts";

const agents = { main: { backend: "echo" }, news: { backend: "echo", skills: ["digest"] } };

function schedule(more: object) {
  return {
    agents,
    gateway: { defaultAgent: "main" },
    schedules: { brief: { cron: "0 9 * * 1-5", message: "x", ...more } },
  };
}
/** Folders of two skills. */
function skills() {
  const dir = folder();
  for (const name of ["digest", "summary"]) mkdirSync(join(dir, name));
  return { skills: { dirs: [dir] } };
}

describe("a schedule", () => {
  test("by default is for the default agent, skips what it missed, and does not overlap", async () => {
    const { config, warnings } = await load(withSections({ ...schedule({}), ...skills() }));
    expect(config.schedules.brief).toEqual({
      cron: "0 9 * * 1-5",
      message: "x",
      agent: "main",
      every: undefined,
      delivery: "none",
      missed: "skip",
      missedWithin: 3_600_000,
      overlap: "skip",
    });
    expect(warnings).toEqual([]);
  });

  test("takes effect at a reload, and is shown with its agent", async () => {
    const { values } = await load(withSections(schedule({ cron: undefined, every: "15m" })));
    const shown = values.filter(({ path }) => path.startsWith("schedules.")).map(({ path, value }) => [path, value]);
    expect(Object.fromEntries(shown)).toMatchObject({
      "schedules.brief.every": "15m",
      "schedules.brief.agent": "main",
    });
  });

  test.each([
    [{ cron: undefined }, ' has no times: give it `cron`, for example `cron: "0 9 * * 1-5"`, or `every`.'],
    [{ every: "1h" }, ".every cannot be used together with `cron`: remove one of them."],
    [
      { cron: undefined, every: "15 minutes" },
      ".every must be a duration, a number with `ms`, `s`, `m`, `h` or `d`, for example `30m` or `7d`.",
    ],
    [{ cron: undefined, every: "500ms" }, ".every must be from `1s` to `30d`."],
    [{ cron: undefined, every: "31d" }, ".every must be from `1s` to `30d`."],
    [
      { cron: undefined, every: "1h", timeZone: "UTC" },
      ".timeZone is only for `cron`: an interval is the same in all zones.",
    ],
    [{ timeZone: "Europe/Berln" }, ".timeZone is not the name of a time zone; did you mean `Europe/Berlin`?"],
    [{ timeZone: "Mars/Base" }, ".timeZone is not the name of a time zone, for example `Europe/Berlin`."],
    [{ message: undefined }, " starts nothing: add a `message`, or a `skill` with its `params`."],
    [{ message: " " }, ".message is blank: write the message for the agent."],
    [{ params: {} }, ".params is only for `skill`."],
    [{ agent: "nws" }, ".agent names an agent that is not configured; did you mean `news`?"],
    [
      { session: "webhook:brief" },
      ".session must be the name of a session that begins with `schedule:`, for example `schedule:brief`.",
    ],
    [
      { delivery: "announce" },
      ".delivery is `announce`, but there is no channel to announce to: set `channel` or `gateway.announceTo`.",
    ],
    [
      { delivery: "announce", channel: "ops" },
      ".channel names a channel that is not configured; there is none yet: add it to `channels`.",
    ],
    [{ missed: "twice" }, ".missed must be `skip` or `once`."],
  ])("MUST NOT be %j", async (wrong, said) => {
    expect(await refused(schedule(wrong))).toEqual([`schedules.brief${said}`]);
  });

  test.each([
    [
      "0 9 * *",
      "must have five fields (minute, hour, day of the month, month, day of the week) or six with the second first, but has 4: for example `0 9 * * 1-5`.",
    ],
    [
      "0 0 9 * * 1 2027",
      "must have five fields (minute, hour, day of the month, month, day of the week) or six with the second first, but has 7: for example `0 9 * * 1-5`.",
    ],
    ["61 * * * *", "has a minute that is not from 0 to 59."],
    ["0 25 * * *", "has an hour that is not from 0 to 23."],
    ["0 9 32 * *", "has a day that is not from 1 to 31."],
    ["0 9 1 13 *", "has a month that is not from 1 to 12 or JAN to DEC."],
    ["0 9 * * 8", "has a day of the week that is not from 0 to 7 or SUN to SAT."],
    ["0 9 * * ?", "has a `?`: write `*` for any value."],
    ["0 0 30 2 *", "never comes true: no date matches it."],
    [
      "2026-12-24T09:00:00",
      "must have five fields (minute, hour, day of the month, month, day of the week) or six with the second first, but has 1: for example `0 9 * * 1-5`.",
    ],
    [
      "a 9 * * *",
      "is not a cron expression: configuration entry 1 (a) contains illegal characters; write five fields, for example `0 9 * * 1-5`.",
    ],
  ])("MUST NOT have the times %j", async (cron, said) => {
    expect(await refused(schedule({ cron }))).toEqual([`schedules.brief.cron ${said}`]);
  });

  test.each(["@daily", "0 9 * * MON-FRI", "*/15 * * * *", "0 0 9 * * *", "0 9 L * *", "0 0 29 2 *"])(
    "may have the times %j",
    async (cron) => {
      const { config } = await load(withSections(schedule({ cron, timeZone: "America/New_York" })));
      expect(config.schedules.brief?.cron).toBe(cron);
    },
  );

  test("is refused with the line and the column of each mistake", async () => {
    const text = `{
  agents: { main: { backend: "echo" } },
  schedules: {
    brief: { cron: "0 9 * * 9", timeZone: "Berlin", message: "x" },
    Poll: { every: "1h", message: "x" },
  },
}`;
    expect(await refusal(text.replace("Poll", "poll"))).toEqual([
      "gateway.json5:4:20: schedules.brief.cron has a day of the week that is not from 0 to 7 or SUN to SAT.",
      "gateway.json5:4:43: schedules.brief.timeZone is not the name of a time zone; did you mean `Europe/Berlin`?",
    ]);
    expect(await refusal(text)).toEqual([
      "gateway.json5:5:5: schedules.Poll must be a name that begins with a small letter, then small letters, digits and `-`, at most 64 characters.",
    ]);
  });

  test("names a skill that exists and that its agent has", async () => {
    const skill = (name: string, agent: string) => ({
      ...schedule({ message: undefined, skill: name, agent }),
      ...skills(),
    });
    expect(await load(withSections(skill("summary", "main")))).toMatchObject({ warnings: [] });
    expect(await refused(skill("sumary", "main"))).toEqual([
      "schedules.brief.skill names a skill that no folder of `skills.dirs` has; did you mean `summary`?",
    ]);
    expect(await refused(skill("summary", "news"))).toEqual([
      "schedules.brief.skill names a skill that is not among the `skills` of the agent `news`.",
    ]);
    expect(await refused({ ...schedule({ skill: "summary" }), ...skills() })).toEqual([
      "schedules.brief.skill cannot be used together with `message`: remove one of them.",
    ]);
  });

  test("has params that fit its skill", async () => {
    const { skills: found } = skills();
    const [dir = ""] = found.dirs;
    writeFileSync(join(dir, "digest", "SKILL.md"), "---\nname: digest\ndescription: Writes it.\n---\nDo it.\n");
    const properties = { n: { type: "integer" }, tags: { type: "array", items: { type: "string" } } };
    writeFileSync(
      join(dir, "digest", "params.schema.json"),
      JSON.stringify({ type: "object", required: ["n"], properties }),
    );
    const written = (params: object | undefined) => ({
      ...schedule({ message: undefined, skill: "digest", params }),
      skills: found,
    });
    const paramsBuilt = { built: { ...built, paramsFaults: BUILT.paramsFaults } };
    expect(await load(withSections(written({ n: 1 })), paramsBuilt)).toMatchObject({ warnings: [] });
    expect(await refused(written({ n: "1", tags: ["a", 2] }), paramsBuilt)).toEqual([
      "schedules.brief.params.n must be an integer.",
      "schedules.brief.params.tags[1] must be a string.",
    ]);
    expect(await refused(written(undefined), paramsBuilt)).toEqual(["schedules.brief.params.n is required."]);
  });

  test("has a session of its own agent", async () => {
    const both = (agent: string) => ({
      agents,
      ...skills(),
      gateway: { defaultAgent: "main" },
      schedules: {
        one: { every: "1h", message: "x", session: "schedule:a" },
        two: { every: "1h", message: "x", session: "schedule:a", agent },
      },
    });
    expect(await load(withSections(both("main")))).toMatchObject({ warnings: [] });
    expect(await refused(both("news"))).toEqual([
      "schedules.two.session is also the session of the schedule `one`, which has another agent, and a session has one agent.",
    ]);
  });
});
