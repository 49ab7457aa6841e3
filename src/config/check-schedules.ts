import { cronFlaw, loadCron } from "#kit/schedule-times.ts";
import { isTimeZone } from "#kit/windows.ts";
import type { Built } from "./check-agents.ts";
import { meantZone } from "./check-budgets.ts";
import { modelFlaw } from "./check-mappings.ts";
import { type CheckedConfig, milliseconds, skillDirOf } from "./config.ts";
import { besideFile } from "./files.ts";
import { type Findings, listed, meantOrListed, notAmong, type Path } from "./problems.ts";

type Schedule = CheckedConfig["schedules"][string];
type Place = Findings & { at: Path; schedule: Schedule; config: CheckedConfig };

const SHORTEST_MS = 1_000;
const LONGEST_MS = 30 * 86_400_000;

/** Checks the times of schedules, their work, and the names that they refer to. `skills` are all skills; undefined if they could not be read. */
export async function checkSchedules(
  config: CheckedConfig,
  { file, skills, paramsFaults }: { file: string | null; skills: readonly string[] | undefined } & Built,
  findings: Findings,
): Promise<void> {
  const entries = Object.entries(config.schedules);
  const hasCron = entries.some(([, { cron }]) => cron !== undefined);
  const readCron = hasCron ? await loadCron() : undefined;
  for (const [name, schedule] of entries) {
    const place: Place = { ...findings, at: ["schedules", name], schedule, config };
    checkTimes(place, readCron);
    checkWork(place, skills);
    checkTarget(place);
    const { skill, params = {} } = schedule;
    const dirs = config.skills.dirs.map((dir) => besideFile(file, skillDirOf(dir).path));
    if (skill === undefined || !skills?.includes(skill)) continue;
    for (const { path, message } of (await paramsFaults?.(dirs, skill, params)) ?? [])
      findings.refuse([...place.at, "params", ...path], `${message}.`);
  }
  checkSessions(config, findings);
}

function checkTimes({ at, schedule, refuse }: Place, readCron: Awaited<ReturnType<typeof loadCron>> | undefined): void {
  const { cron, every, timeZone = "UTC" } = schedule;
  if (cron === undefined && every === undefined)
    refuse(at, 'has no times: give it `cron`, for example `cron: "0 9 * * 1-5"`, or `every`.', "key");
  if (cron !== undefined && every !== undefined)
    refuse([...at, "every"], "cannot be used together with `cron`: remove one of them.", "key");
  if (cron === undefined && schedule.timeZone !== undefined)
    refuse([...at, "timeZone"], "is only for `cron`: an interval is the same in all zones.", "key");
  const isZone = isTimeZone(timeZone);
  if (!isZone) refuse([...at, "timeZone"], `is not the name of a time zone${meantZone(timeZone)}`);
  const flaw =
    cron === undefined || !readCron ? undefined : cronFlaw(readCron, cron, isZone ? timeZone : "UTC", Date.now());
  if (flaw !== undefined) refuse([...at, "cron"], flaw);
  const ms = every === undefined ? SHORTEST_MS : milliseconds(every);
  if (ms < SHORTEST_MS || ms > LONGEST_MS) refuse([...at, "every"], "must be from `1s` to `30d`.");
}

function checkWork({ at, schedule, config, refuse }: Place, skills: readonly string[] | undefined): void {
  const { message, skill, params } = schedule;
  if (message === undefined && skill === undefined)
    refuse(at, "starts nothing: add a `message`, or a `skill` with its `params`.", "key");
  if (message !== undefined && skill !== undefined)
    refuse([...at, "skill"], "cannot be used together with `message`: remove one of them.", "key");
  if (message !== undefined && !/\S/.test(message))
    refuse([...at, "message"], "is blank: write the message for the agent.");
  if (params !== undefined && skill === undefined) refuse([...at, "params"], "is only for `skill`.", "key");
  if (skill === undefined) return;
  if (skills && !skills.includes(skill)) {
    const hint = skills.length === 0 ? "there is none yet." : meantOrListed(skills, skill);
    refuse([...at, "skill"], `names a skill that no folder of \`skills.dirs\` has; ${hint}`);
    return;
  }
  const [name, agent] = agentOf(schedule, config);
  if (agent && !agent.skills.includes("*") && !agent.skills.includes(skill))
    refuse([...at, "skill"], `names a skill that is not among the \`skills\` of the agent \`${name}\`.`);
}

function agentOf({ agent }: Schedule, { gateway, agents }: CheckedConfig) {
  const name = agent ?? gateway.defaultAgent ?? Object.keys(agents)[0] ?? "";
  return [name, Object.hasOwn(agents, name) ? agents[name] : undefined] as const;
}

function checkTarget({ at, schedule, config, refuse }: Place): void {
  const { model, channel, delivery } = schedule;
  const [name, agent] = agentOf(schedule, config);
  const flaw = agent && modelFlaw(name, agent, model);
  if (flaw !== undefined) refuse([...at, "model"], flaw);
  if (!agent && schedule.agent !== undefined)
    refuse([...at, "agent"], `names an agent ${notAmong(Object.keys(config.agents), name, "agents")}`);
  const channels = Object.keys(config.channels);
  if (delivery !== "announce" || config.gateway.announceTo !== undefined) return;
  if (channel === undefined)
    refuse(
      [...at, "delivery"],
      "is `announce`, but there is no channel to announce to: set `channel` or `gateway.announceTo`.",
    );
  else if (!channels.includes(channel))
    refuse([...at, "channel"], `names a channel ${notAmong(channels, channel, "channels")}`);
}

/** Refuses two schedules with one session and different agents. */
function checkSessions(config: CheckedConfig, { refuse }: Findings): void {
  const owners = new Map<string, { agent: string; name: string }>();
  for (const [name, schedule] of Object.entries(config.schedules)) {
    const { session } = schedule;
    if (session === undefined) continue;
    const [agent] = agentOf(schedule, config);
    const owner = owners.get(session);
    if (!owner) owners.set(session, { agent, name });
    else if (owner.agent !== agent)
      refuse(
        ["schedules", name, "session"],
        `is also the session of the schedule ${listed([owner.name])}, which has another agent, and a session has one agent.`,
      );
  }
}
