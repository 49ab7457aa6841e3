import type { Command } from "commander";
import { calling } from "../calling.ts";
import { cut, fields, oneLine, printItem, printList } from "../output.ts";
import { styled } from "../terminal.ts";
import { asTyped } from "../typed.ts";
import { count, shortTime } from "../values.ts";

export function addAgents(program: Command): void {
  const agents = program
    .command("agents")
    .summary("agents: list, show, reload, pause, resume, beat")
    .description("The agents of the gateway.");
  for (const add of [addList, addShow, addReload, addPause, addResume, addBeat]) add(agents);
}

function addList(agents: Command): void {
  calling(
    agents
      .command("list")
      .summary("list agents and their state")
      .addHelpText("after", "\nExample:\n  agent-gateway agents list"),
    async ({ gateway, options, signal }) => {
      const list = await gateway.rpc.agent.list({}, { signal });
      printList(options, list, {
        items: list.agents,
        id: ({ agentName }) => agentName,
        none: "No agents.",
        columns: [
          { title: "AGENT", of: ({ agentName }) => agentName },
          { title: "STATE", of: ({ state, paused }) => (paused ? "paused" : state) },
          { title: "BACKEND", of: ({ backend, model }) => (model === null ? backend : `${backend} ${model}`) },
          { title: "RUNS", of: ({ running }) => running, right: true },
          { title: "WAIT", of: ({ queued }) => queued, right: true },
          { title: "EVENTS", of: ({ waitingEvents }) => waitingEvents, right: true },
          { title: "LAST TURN", of: ({ lastTurnAt }) => shortTime(lastTurnAt) },
        ],
      });
    },
  );
}

function addShow(agents: Command): void {
  calling(
    agents
      .command("show")
      .summary("show one agent")
      .argument("<agent>", "its name")
      .addHelpText("after", "\nExample:\n  agent-gateway agents show main"),
    async ({ gateway, options, signal }, agentName = "") => {
      const agent = await gateway.rpc.agent.status({ agentName }, { signal });
      printItem(options, agent, agentName, () =>
        fields({
          agent: agent.agentName,
          state: agent.paused ? `paused since ${shortTime(agent.pausedAt)}` : agent.state,
          description: oneLine(agent.description) || undefined,
          backend: agent.backend,
          model: agent.model ?? undefined,
          running: agent.running,
          queued: agent.queued,
          events: agent.waitingEvents,
          heartbeat: agent.heartbeat.every,
          "next beat": agent.heartbeat.nextAt === null ? undefined : shortTime(agent.heartbeat.nextAt),
          skills: agent.skills.join(", ") || "none",
          "last turn": shortTime(agent.lastTurnAt),
        }),
      );
    },
  );
}

function addReload(agents: Command): void {
  calling(
    agents
      .command("reload")
      .summary("reload the configuration and skills of an agent")
      .argument("<agent>", "its name")
      .addHelpText("after", "\nExample:\n  agent-gateway agents reload main"),
    async ({ gateway, options, signal }, agentName = "") => {
      const done = await gateway.rpc.agent.reload({ agentName }, { signal });
      if (done.problems.length > 0) process.exitCode = 1;
      printItem(options, done, agentName, () =>
        [
          done.reloaded
            ? `${agentName} was reloaded: ${done.changed.length === 0 ? "nothing changed" : `changed are ${done.changed.join(", ")}`}.`
            : `${agentName} was not reloaded: the configuration is not valid.`,
          ...done.problems.map(
            ({ file, line, key, message }) =>
              `${styled("red", "✕")} ${file ?? ""}${line === null ? "" : `:${line}`} ${key} ${message}`,
          ),
          ...done.skills.skipped.map(
            ({ folder, reason }) => `${styled("yellow", "!")} the skill in ${folder} was left out: ${oneLine(reason)}`,
          ),
        ].join("\n"),
      );
    },
  );
}

function addPause(agents: Command): void {
  calling(
    agents
      .command("pause")
      .summary("stop an agent from starting work until it is resumed")
      .argument("<agent>", "its name")
      .addHelpText("after", "\nExample:\n  agent-gateway agents pause main"),
    async ({ gateway, options, signal }, name = "") => {
      const done = await gateway.agents.pause(name, { signal });
      printItem(
        options,
        done,
        name,
        () =>
          `${name} has been paused since ${shortTime(done.paused_at)}. New work for it waits.\nNext: ${asTyped(`agent-gateway agents resume ${name}`)}`,
      );
    },
  );
}

function addResume(agents: Command): void {
  calling(
    agents
      .command("resume")
      .summary("resume a paused agent")
      .argument("<agent>", "its name")
      .addHelpText("after", "\nExample:\n  agent-gateway agents resume main"),
    async ({ gateway, options, signal }, name = "") => {
      const done = await gateway.agents.resume(name, { signal });
      printItem(options, done, name, () => `${name} goes on.`);
    },
  );
}

function addBeat(agents: Command): void {
  calling(
    agents
      .command("beat")
      .summary("start a heartbeat of an agent now")
      .argument("<agent>", "its name")
      .addHelpText("after", "\nExample:\n  agent-gateway agents beat main"),
    async ({ gateway, options, signal }, name = "") => {
      const done = await gateway.agents.beat(name, { signal });
      printItem(options, done, name, () => cut(BEATS[done.outcome](done.waiting_events), 200));
    },
  );
}

function waits(events: number): string {
  return `${count(events, "event")} ${events === 1 ? "waits" : "wait"}`;
}
const BEATS: Record<"started" | "nothing-waiting" | "running" | "paused", (waiting: number) => string> = {
  started: (waiting) => `A heartbeat started. ${waits(waiting)} for it.`,
  "nothing-waiting": () => "No event waits, so no heartbeat started.",
  running: () => "A heartbeat is already running.",
  paused: (waiting) => `The agent is paused, so no heartbeat started. ${waits(waiting)}.`,
};
