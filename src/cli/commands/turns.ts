import { type Command, Option } from "commander";
import type { Turn } from "#generated/clients/typescript/src/rest-types.ts";
import { calling } from "../calling.ts";
import { fields, oneLine, printItem, printList } from "../output.ts";
import { print, printPieces, say } from "../terminal.ts";
import { asTyped } from "../typed.ts";
import { shortTime, wholeNumber } from "../values.ts";

const STATES = ["queued", "running", "completed", "failed", "cancelled"] as const;
type ListOptions = { status?: Turn["status"]; agent?: string; session?: string; limit: string; cursor?: string };

export function addTurns(program: Command): void {
  const turns = program
    .command("turns")
    .summary("turns: list, show, cancel")
    .description("The runs of agents on their sessions.");

  calling<ListOptions>(
    turns
      .command("list")
      .summary("list turns, newest first")
      .addOption(new Option("--status <state>", "only this state").choices(STATES))
      .option("--agent <name>", "only this agent")
      .option("--session <id>", "only this session")
      .option("--limit <n>", "the maximum number of rows", "20")
      .option("--cursor <cursor>", "the cursor that the previous page printed")
      .addHelpText(
        "after",
        "\nExamples:\n  agent-gateway turns list --status failed\n  agent-gateway turns list --session agent:main:main -q",
      ),
    async ({ gateway, options, signal }) => {
      const { status, agent, session: session_id, cursor } = options;
      const page = await gateway.turns.list(
        { status, agent, session_id, cursor, limit: wholeNumber(options.limit, "--limit") },
        { signal },
      );
      printList(options, page, {
        items: page.turns,
        id: ({ turn_id }) => turn_id,
        none: "No turns.",
        columns: [
          { title: "TURN", of: ({ turn_id }) => turn_id },
          { title: "STATE", of: (turn) => turn.status },
          { title: "AGENT", of: (turn) => turn.agent },
          { title: "BEGUN", of: ({ created_at }) => shortTime(created_at) },
          { title: "WHY", of: ({ error }) => error && (error.detail ?? error.title) },
        ],
        next: page.next_cursor,
      });
    },
  );

  calling<{ follow?: boolean }>(
    turns
      .command("show")
      .summary("show a turn and its reply")
      .argument("<turn>", "its id")
      .option("-f, --follow", "print the reply as it is written, until the turn ends")
      .addHelpText(
        "after",
        "\nExamples:\n  agent-gateway turns show turn_01M7YN0XEMM1B7E5S8YF3GKP2N\n  agent-gateway turns show --follow turn_01M7YN0XEMM1B7E5S8YF3GKP2N",
      ),
    async ({ gateway, options, signal }, id = "") => {
      if (options.follow && options.json) {
        for await (const event of gateway.turns.events(id, {}, { signal })) print(JSON.stringify(event));
        return;
      }
      if (options.follow) {
        return await printPieces(gateway.turns.events(id, {}, { signal }).text());
      }
      const turn = await gateway.turns.get(id, { signal });
      printItem(options, turn, id, () => turnWords(turn));
      if (turn.delivery_id !== null && !options.json && !options.quiet)
        say(asTyped(`Next: agent-gateway deliveries show ${turn.delivery_id}`));
    },
  );

  calling(
    turns
      .command("cancel")
      .summary("cancel a queued or running turn")
      .argument("<turn>", "its id")
      .addHelpText("after", "\nExample:\n  agent-gateway turns cancel turn_01M7YN0XEMM1B7E5S8YF3GKP2N"),
    async ({ gateway, options, signal }, id = "") => {
      const turn = await gateway.turns.cancel(id, { signal });
      printItem(options, turn, id, () => `${id} is cancelled.${turn.reply ? " The text so far is stored." : ""}`);
    },
  );

  calling(
    turns
      .command("announce")
      .summary("send the reply of a turn to its channel again")
      .argument("<turn>", "its id")
      .addHelpText(
        "after",
        "\nFind undelivered replies with: agent-gateway deliveries list --reply failed\n\nExample:\n  agent-gateway turns announce turn_01M7YN0XEMM1B7E5S8YF3GKP2N",
      ),
    async ({ gateway, options, signal }, id = "") => {
      const turn = await gateway.turns.announce(id, { signal });
      printItem(options, turn, id, () => `The reply of ${id} is queued for the channel ${turn.announcement?.channel}.`);
    },
  );
}

function announcementWords({ channel, state, reason }: NonNullable<Turn["announcement"]>): string {
  return `${state}, channel ${channel}${reason === null ? "" : `: ${oneLine(reason)}`}`;
}

function turnWords(turn: Turn): string {
  const { error, usage, announcement } = turn;
  const head = fields({
    turn: turn.turn_id,
    state: turn.status,
    agent: turn.agent,
    session: turn.session_id,
    model: turn.model ?? undefined,
    attempt: turn.attempt > 1 ? turn.attempt : undefined,
    queued: shortTime(turn.created_at),
    began: shortTime(turn.started_at),
    ended: shortTime(turn.ended_at),
    tokens: usage === null ? undefined : usage.total,
    why: error === null ? undefined : `${error.name}: ${oneLine(error.detail ?? error.title)}`,
    announced: announcement === null ? undefined : announcementWords(announcement),
  });
  return turn.reply === null ? head : `${head}\n\n${turn.reply}`;
}
