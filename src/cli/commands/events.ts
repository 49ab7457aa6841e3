import { type Command, Option } from "commander";
import type { SystemEvent } from "#generated/clients/typescript/src/rest-types.ts";
import { calling } from "../calling.ts";
import { cut, oneLine, printItem, printList } from "../output.ts";
import { print, styled } from "../terminal.ts";
import { asTyped } from "../typed.ts";
import { shortTime, wholeNumber } from "../values.ts";

const STATES = ["queued", "handled", "dead"] as const;

export function addEvents(program: Command): void {
  const events = program
    .command("events")
    .summary("system events: list, tail, replay")
    .description("The system events that agents handle at their heartbeats.");

  calling<{ status?: SystemEvent["status"]; agent?: string; limit: string; cursor?: string }>(
    events
      .command("list")
      .summary("list events, newest first")
      .addOption(new Option("--status <state>", "only this state").choices(STATES))
      .option("--agent <name>", "only this agent")
      .option("--limit <n>", "the maximum number of rows", "20")
      .option("--cursor <cursor>", "the cursor that the previous page printed")
      .addHelpText(
        "after",
        "\nExamples:\n  agent-gateway events list --status dead\n  agent-gateway events list --status dead -q | xargs -n1 agent-gateway events replay",
      ),
    async ({ gateway, options, signal }) => {
      const { status, agent, cursor } = options;
      const page = await gateway.events.list(
        { status, agent, cursor, limit: wholeNumber(options.limit, "--limit") },
        { signal },
      );
      printList(options, page, {
        items: page.events,
        id: ({ event_id }) => event_id,
        none: "No events.",
        columns: [
          { title: "EVENT", of: ({ event_id }) => event_id },
          { title: "STATE", of: (event) => event.status },
          { title: "AGENT", of: (event) => event.agent },
          { title: "QUEUED", of: ({ created_at }) => shortTime(created_at) },
          { title: "TEXT", of: ({ text, reason }) => cut(oneLine(reason ?? text), 40) },
        ],
        next: page.next_cursor,
      });
    },
  );

  calling<{ agent?: string }>(
    events
      .command("tail")
      .summary("print events live, when they are queued and when they end")
      .option("--agent <name>", "only this agent")
      .addHelpText("after", "\nExample:\n  agent-gateway events tail --json"),
    async ({ connect, options, signal }) => {
      await using socket = await connect();
      const pushes = socket.pushes({ signal });
      await socket.subscribe({ gateway: null }, { signal });
      for await (const push of pushes) {
        if (!push.method.startsWith("event.")) continue;
        const { at, eventId, agentName, reason } = push.params as unknown as DeadEvent;
        if (options.agent !== undefined && agentName !== options.agent) continue;
        if (options.json) print(JSON.stringify({ event: push.method, ...push.params }));
        else if (options.quiet) print(eventId);
        else
          print(
            `${shortTime(at)}  ${styled("bold", push.method.slice("event.".length).padEnd(7))}  ${eventId}  ${agentName}${reason ? `  ${oneLine(reason)}` : ""}`,
          );
      }
    },
  );

  calling(
    events
      .command("replay")
      .summary("queue a dead event again")
      .argument("<event>", "its id")
      .addHelpText("after", "\nExample:\n  agent-gateway events replay evt_01M7YN0XEMM1B7E5S8YF3GKP2N"),
    async ({ gateway, options, signal }, id = "") => {
      const event = await gateway.events.replay(id, { signal });
      printItem(
        options,
        event,
        id,
        () =>
          `${id} waits for the next beat of ${event.agent}.\nNext: ${asTyped(`agent-gateway agents beat ${event.agent}`)}`,
      );
    },
  );
}

type DeadEvent = { at: string; eventId: string; agentName: string; reason?: string };
