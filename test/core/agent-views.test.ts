import { describe, expect, it } from "vitest";
import { agentView, setPaused } from "#core/agents/agents.ts";
import { BackendError } from "#kit/errors.ts";
import { skillsFolder, skillText } from "#test/harness/skills.ts";
import { startCore } from "./start-core.ts";

const SKILLS = skillsFolder(
  Object.fromEntries(["zebra", "apple", "mango"].map((name) => [name, skillText(name, "A skill.")])),
);

describe("an agent in the API", () => {
  it("has the fields of its configuration", async () => {
    await using core = await startCore({
      agents: [{ name: "main", description: "Helps.", model: "small", heartbeatMs: 5_400_000 }],
    });
    expect(agentView(core, "main")).toEqual({
      agentName: "main",
      description: "Helps.",
      backend: "scripted",
      model: "small",
      state: "idle",
      paused: false,
      pausedAt: null,
      running: 0,
      queued: 0,
      waitingEvents: 0,
      skills: [],
      heartbeat: { every: "90m", nextAt: expect.stringMatching(/^2026-11-21T09:3\d:\d\d\.\d{3}Z$/) },
      lastTurnAt: null,
    });
  });

  it.each([
    [undefined, "off"],
    [1_800_000, "30m"],
    [90_000, "90s"],
    [500, "500ms"],
    [43_200_000, "12h"],
    [86_400_000, "1d"],
  ])("writes a pause of %d ms as %s", async (heartbeatMs, every) => {
    await using core = await startCore({ agents: [{ name: "main", heartbeatMs }] });
    expect(agentView(core, "main").heartbeat.every).toBe(every);
  });

  it("has the time of its pause, and no next beat, until it is resumed", async () => {
    await using core = await startCore();
    await setPaused(core, "main", true, "ada");
    const paused = { paused: true, pausedAt: "2026-11-21T08:00:00.000Z", state: "idle" };
    expect(agentView(core, "main")).toMatchObject({ ...paused, heartbeat: { nextAt: null } });
    await setPaused(core, "main", false, "ada");
    const { heartbeat, ...view } = agentView(core, "main");
    expect([view.paused, view.pausedAt, heartbeat.nextAt]).toEqual([false, null, expect.any(String)]);
  });

  it("is busy while a turn runs, and counts running and waiting turns", async () => {
    await using core = await startCore();
    for (const session of ["chat:a", "chat:a", "chat:b"]) await core.start({ session });
    expect(agentView(core, "main")).toMatchObject({ state: "busy", running: 2, queued: 1 });
  });

  it("has the time at which its last turn ended", async () => {
    await using core = await startCore();
    const turn = await core.start();
    const run = await core.scripted.next();
    await core.clock.advance(1_500);
    run.end();
    await core.ended(turn);
    const { state, lastTurnAt } = agentView(core, "main");
    expect([state, lastTurnAt]).toEqual(["idle", "2026-11-21T08:00:01.500Z"]);
  });

  it("is failing from a turn that failed in its backend until a turn completes", async () => {
    await using core = await startCore();
    const first = await core.start();
    (await core.scripted.next()).fail(new BackendError("no"));
    await core.ended(first);
    expect(agentView(core, "main").state).toBe("failing");
    const second = await core.start();
    const run = await core.scripted.next();
    expect(agentView(core, "main").state).toBe("busy");
    run.end();
    await core.ended(second);
    expect(agentView(core, "main").state).toBe("idle");
  });

  it("lists its skills by name, and the skills of a new configuration immediately", async () => {
    await using core = await startCore({
      agents: [{ name: "all" }, { name: "some", skills: ["mango"] }],
      settings: { skillDirs: [SKILLS] },
    });
    expect(agentView(core, "all").skills).toEqual(["apple", "mango", "zebra"]);
    expect(agentView(core, "some").skills).toEqual(["mango"]);
    await core.core.reconfigure(core.settingsWith([{ name: "some", skills: ["zebra", "none"], description: "New." }]));
    expect(agentView(core, "some")).toMatchObject({ skills: ["zebra"], description: "New." });
    expect(() => agentView(core, "all")).toThrow(expect.objectContaining({ name: "agent-not-found" }));
  });
});
