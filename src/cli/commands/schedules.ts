import type { Command } from "commander";
import type { Schedule } from "#generated/clients/typescript/src/rest-types.ts";
import { calling } from "../calling.ts";
import { cut, oneLine, printItem, printList } from "../output.ts";
import { withProgress } from "../terminal.ts";
import { asTyped } from "../typed.ts";
import { shortTime } from "../values.ts";

export function addSchedules(program: Command): void {
  const schedules = program
    .command("schedules")
    .summary("turns at planned times: list, run, pause, resume")
    .description(
      "The schedules of the configuration, with their next and their last run. Times are in the time zone of this machine.",
    );
  for (const add of [addList, addRun, addPause, addResume]) add(schedules);
}

function addList(schedules: Command): void {
  calling(
    schedules
      .command("list", { isDefault: true })
      .summary("list the schedules, with their next and their last run")
      .addHelpText(
        "after",
        "\nExamples:\n  agent-gateway schedules\n  agent-gateway schedules list --json | jq '.schedules[] | {name, next}'",
      ),
    async ({ gateway, options, signal }) => {
      const list = await gateway.schedules.list({ signal });
      printList(options, list, {
        items: list.schedules,
        id: ({ name }) => name,
        none: "No schedules. Configure them in `schedules`.",
        columns: [
          { title: "SCHEDULE", of: ({ name }) => name },
          { title: "WHEN", of: whenOf },
          { title: "NEXT", of: ({ state, next }) => (state === "paused" ? "paused" : shortTime(next[0])) },
          { title: "LAST", of: ({ last }) => shortTime(last?.at) },
          { title: "RESULT", of: resultOf },
        ],
      });
    },
  );
}

function addRun(schedules: Command): void {
  calling<{ wait?: boolean }>(
    schedules
      .command("run")
      .summary("start a turn of a schedule now")
      .argument("<schedule>", "the name of the schedule")
      .option("--wait", "wait for the result")
      .addHelpText(
        "after",
        "\nThe planned times do not change. Also works for a paused schedule.\n\nExamples:\n  agent-gateway schedules run brief\n  agent-gateway schedules run brief --wait",
      ),
    async ({ gateway, options, signal }, name = "") => {
      const run = await gateway.schedules.run(name, { signal });
      if (!options.wait) {
        const next = asTyped(`agent-gateway turns show ${run.turn_id} --follow`);
        printItem(options, run, run.turn_id, () => `${name} runs now: ${run.turn_id}\nNext: ${next}`);
        return;
      }
      const { deliveryWords, untilEnded } = await import("../deliveries.ts");
      const ended = await withProgress("waiting for the result", untilEnded(gateway, run.delivery_id, signal));
      printItem(options, ended, run.turn_id, () => deliveryWords(ended, {}));
      if (ended.outcome === "failed") process.exitCode = TURN_FAILED;
    },
  );
}
const TURN_FAILED = 7;

function addPause(schedules: Command): void {
  calling(
    schedules
      .command("pause")
      .summary("stop a schedule from starting turns until it is resumed")
      .argument("<schedule>", "the name of the schedule")
      .addHelpText("after", "\nExample:\n  agent-gateway schedules pause brief"),
    async ({ gateway, options, signal }, name = "") => {
      const schedule = await gateway.schedules.pause(name, { signal });
      printItem(
        options,
        schedule,
        name,
        () =>
          `${name} has been paused since ${shortTime(schedule.paused_at)}. It starts no turns at its planned times.\nNext: ${asTyped(`agent-gateway schedules resume ${name}`)}`,
      );
    },
  );
}

function addResume(schedules: Command): void {
  calling(
    schedules
      .command("resume")
      .summary("resume a paused schedule")
      .argument("<schedule>", "the name of the schedule")
      .addHelpText("after", "\nExample:\n  agent-gateway schedules resume brief"),
    async ({ gateway, options, signal }, name = "") => {
      const schedule = await gateway.schedules.resume(name, { signal });
      const { next } = schedule;
      printItem(options, schedule, name, () =>
        next[0] === undefined
          ? `${name} is active, but has no further planned time.`
          : `${name} is active. It runs next at ${shortTime(next[0])}.`,
      );
    },
  );
}

function whenOf({ cron, every, time_zone: timeZone }: Schedule): string {
  return cron === null ? `every ${every}` : `${cron} ${timeZone}`;
}

/** The state of the turn, or the reason why there is none. */
function resultOf({ last }: Schedule): string {
  if (last === null) return "not run yet";
  if (last.outcome === "started") return last.turn_status ?? "started";
  return cut(oneLine(`${last.outcome}: ${last.reason}`), 100);
}
