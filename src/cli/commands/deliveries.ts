import { type Command, Option } from "commander";
import { calling } from "../calling.ts";
import { fields, printItem, printList } from "../output.ts";
import { say, withProgress } from "../terminal.ts";
import { asTyped } from "../typed.ts";
import { jsonOf, momentOf, shortTime, textOf, wholeNumber } from "../values.ts";

const SURFACES = ["rest", "rpc", "hooks", "schedule"] as const;
const OUTCOMES = [
  "refused",
  "unmatched",
  "challenge",
  "repeated",
  "coalesced",
  "skipped",
  "missed",
  "queued",
  "running",
  "completed",
  "failed",
  "cancelled",
  "handled",
  "dead",
  "gone",
] as const;
type Outcome = import("#generated/clients/typescript/src/rest-types.ts").DeliveryOutcome;
type Surface = (typeof SURFACES)[number];
const REPLIES = ["waiting", "retrying", "delivered", "failed"] as const;
type AnnouncementState = (typeof REPLIES)[number];
type Filters = {
  surface?: Surface;
  outcome?: Outcome;
  mapping?: string;
  agent?: string;
  session?: string;
  from?: string;
  to?: string;
  id?: string;
  reply?: AnnouncementState;
  channel?: string;
  limit: string;
  cursor?: string;
};

export function addDeliveries(program: Command): void {
  const deliveries = program
    .command("deliveries")
    .summary("inbound requests: list, tail, show, replay, curl")
    .description("The requests in the flight recorder, with their results.");
  for (const add of [addList, addTail, addShow, addReplay, addCurl]) add(deliveries);
}

function addList(deliveries: Command): void {
  calling<Filters>(
    deliveries
      .command("list")
      .summary("list requests, newest first")
      .addOption(surface())
      .addOption(outcome())
      .option("--mapping <name>", "only this mapping")
      .option("--agent <name>", "only this agent")
      .option("--session <id>", "only this session")
      .option("--from <time>", "the start of the period: 2h for two hours ago, or 2026-11-21T08:00:00Z")
      .option("--to <time>", "the end of the period")
      .option("--id <id>", "only this id: of a request, a turn, a message, an event, or the sender's")
      .addOption(new Option("--reply <state>", "only requests with this reply state").choices(REPLIES))
      .option("--channel <name>", "only requests with a reply to this channel")
      .option("--limit <n>", "the maximum number of rows", "20")
      .option("--cursor <cursor>", "the cursor that the previous page printed")
      .addHelpText(
        "after",
        "\nExamples:\n  agent-gateway deliveries list --outcome failed --from 2h\n  agent-gateway deliveries list --surface hooks --json | jq '.deliveries[].path'",
      ),
    async ({ gateway, options, signal }) => {
      const { session: session_id, from, to, limit, surface, outcome, mapping, agent, id, channel, cursor } = options;
      const query = {
        surface,
        outcome,
        mapping,
        agent,
        session_id,
        id,
        announcement: options.reply,
        channel,
        cursor,
        limit: wholeNumber(limit, "--limit"),
        ...(from && { from: momentOf(from, "--from") }),
        ...(to && { to: momentOf(to, "--to") }),
      };
      const page = await gateway.deliveries.list(query, { signal });
      printList(options, page, {
        items: page.deliveries,
        id: ({ delivery_id }) => delivery_id,
        none: "No requests.",
        columns: [
          { title: "DELIVERY", of: ({ delivery_id }) => delivery_id },
          { title: "RECEIVED", of: ({ at }) => shortTime(at) },
          { title: "OUTCOME", of: (delivery) => delivery.outcome },
          { title: "STATUS", of: ({ status }) => status, right: true },
          { title: "REQUEST", of: ({ method, path }) => `${method} ${path}` },
        ],
        next: page.next_cursor,
      });
    },
  );
}

function addTail(deliveries: Command): void {
  calling<{ surface?: Surface; outcome?: Outcome }>(
    deliveries
      .command("tail")
      .summary("print requests and their results live")
      .addOption(surface())
      .addOption(outcome())
      .addHelpText(
        "after",
        "\nAfter a lost connection it continues where it stopped. Each line has the id and the outcome of a request, and the reason if it was refused or failed.\n\nExamples:\n  agent-gateway deliveries tail\n  agent-gateway deliveries tail --outcome refused --json",
      ),
    async (given) => {
      const { tailDeliveries } = await import("../deliveries.ts");
      await tailDeliveries(given);
    },
  );
}

function addShow(deliveries: Command): void {
  calling<{ raw?: boolean }>(
    deliveries
      .command("show")
      .summary("show the timeline of a request")
      .argument("<delivery>", "its id")
      .option("--raw", "also print the headers and the body")
      .addHelpText("after", "\nExample:\n  agent-gateway deliveries show dlv_01M7YN0XENG6PX2VW8BN0JQS4T --raw"),
    async ({ gateway, options, signal }, id = "") => {
      const delivery = await gateway.deliveries.get(id, { signal });
      const { deliveryWords } = await import("../deliveries.ts");
      printItem(options, delivery, id, () => deliveryWords(delivery, options));
    },
  );
}

function addReplay(deliveries: Command): void {
  calling<{ body?: string; wait?: boolean }>(
    deliveries
      .command("replay")
      .summary("send a request again, with the current configuration")
      .argument("<delivery>", "its id")
      .option("--body <json>", "another body: JSON, @FILE, or - for standard input")
      .option("--wait", "wait for the result")
      .addHelpText(
        "after",
        "\nExamples:\n  agent-gateway deliveries replay dlv_01M7YN0XENG6PX2VW8BN0JQS4T --wait\n  agent-gateway deliveries replay dlv_01M7YN0XENG6PX2VW8BN0JQS4T --body @edited.json",
      ),
    async ({ gateway, options, signal }, id = "") => {
      const body =
        options.body === undefined
          ? undefined
          : { body: jsonOf(textOf(options.body), "--body") as Record<string, unknown> };
      const again = await gateway.deliveries.replay(id, body, { signal });
      if (!options.wait) {
        const { message, outcome, turn_id, event_id } = again;
        printItem(options, again, again.delivery_id, () =>
          fields({
            delivery: again.delivery_id,
            outcome,
            message,
            turn: turn_id ?? undefined,
            event: event_id ?? undefined,
          }),
        );
        if (!options.json && !options.quiet) say(asTyped(`Next: agent-gateway deliveries show ${again.delivery_id}`));
        return;
      }
      const { deliveryWords, untilEnded } = await import("../deliveries.ts");
      const ended = await withProgress("waiting for the result", untilEnded(gateway, again.delivery_id, signal));
      printItem(options, ended, ended.delivery_id, () => deliveryWords(ended, {}));
      if (ended.outcome === "failed" || ended.outcome === "dead") process.exitCode = 7;
    },
  );
}

function addCurl(deliveries: Command): void {
  calling(
    deliveries
      .command("curl")
      .summary("print a curl command that sends the same request")
      .argument("<delivery>", "its id")
      .addHelpText(
        "after",
        "\nThe command works in sh, bash, zsh and fish. It names secrets by variables: $REST_API_KEY, $RPC_TOKEN, $WEBHOOK_TOKEN.\n\nExample:\n  agent-gateway deliveries curl dlv_01M7YN0XENG6PX2VW8BN0JQS4T",
      ),
    async ({ gateway, address, options, signal }, id = "") => {
      const delivery = await gateway.deliveries.get(id, { signal });
      const { curlNote, curlOfDelivery } = await import("#console/lib/requests.ts");
      const command = curlOfDelivery(delivery, address.url);
      printItem(options, { command }, id, () => command);
      const note = curlNote(delivery);
      if (note !== undefined && !options.json) say(note);
    },
  );
}

function surface() {
  return new Option("--surface <surface>", "only this surface").choices(SURFACES);
}
function outcome() {
  return new Option("--outcome <outcome>", "only this outcome").choices(OUTCOMES);
}
