import { type Command, Option } from "commander";
import type { NotificationState } from "#generated/clients/typescript/src/rest-types.ts";
import { calling } from "../calling.ts";
import { printItem, printList } from "../output.ts";
import { asTyped } from "../typed.ts";
import { shortTime, wholeNumber } from "../values.ts";

const STATES = ["waiting", "retrying", "delivered", "failed"] as const;

export function addNotifications(program: Command): void {
  const notifications = program
    .command("notifications")
    .summary("events for other systems: list, replay, test")
    .description("The events that the gateway sends to the endpoints of `notify`.");

  calling<{ endpoint?: string; state?: NotificationState; limit: string; cursor?: string }>(
    notifications
      .command("list")
      .summary("list notifications, newest first")
      .option("--endpoint <name>", "only this endpoint")
      .addOption(new Option("--state <state>", "only this state").choices(STATES))
      .option("--limit <n>", "the maximum number of rows", "20")
      .option("--cursor <cursor>", "the cursor that the previous page printed")
      .addHelpText(
        "after",
        "\nExamples:\n  agent-gateway notifications list --state failed\n  agent-gateway notifications list --state failed -q | xargs -n1 agent-gateway notifications replay",
      ),
    async ({ gateway, options, signal }) => {
      const { endpoint, state, cursor } = options;
      const page = await gateway.notifications.list(
        { endpoint, state, cursor, limit: wholeNumber(options.limit, "--limit") },
        { signal },
      );
      printList(options, page, {
        items: page.notifications,
        id: ({ notification_id }) => notification_id,
        none: "No notifications.",
        columns: [
          { title: "NOTIFICATION", of: ({ notification_id }) => notification_id },
          { title: "EVENT", of: ({ type }) => type },
          { title: "STATE", of: (notification) => notification.state },
          { title: "TRIES", of: ({ attempts }) => attempts, right: true },
          { title: "CREATED", of: ({ created_at }) => shortTime(created_at) },
          { title: "REASON", of: ({ reason }) => reason },
        ],
        next: page.next_cursor,
      });
    },
  );

  calling(
    notifications
      .command("replay")
      .summary("send a notification again")
      .argument("<notification>", "the id of the notification")
      .addHelpText(
        "after",
        "\nThe receiver gets the same webhook-id.\n\nExample:\n  agent-gateway notifications replay ntf_01M7YN0XEMM1B7E5S8YF3GKP2N.ops",
      ),
    async ({ gateway, options, signal }, id = "") => {
      const queued = await gateway.notifications.replay(id, { signal });
      const next = asTyped(`agent-gateway notifications list --endpoint ${queued.endpoint}`);
      printItem(options, queued, id, () => `${id} is queued again for ${queued.endpoint}.\nNext: ${next}`);
    },
  );

  calling(
    notifications
      .command("test")
      .summary("send a test event to an endpoint, and print its answer")
      .argument("<endpoint>", "the name of the endpoint in `notify`")
      .addHelpText("after", "\nExample:\n  agent-gateway notifications test ops"),
    async ({ gateway, options, signal }, name = "") => {
      const result = await gateway.notifications.test(name, { signal });
      const { delivered, status, reason, duration_ms } = result;
      printItem(options, result, name, () =>
        delivered
          ? `${name} accepted the test event: HTTP ${status}, ${Math.round(duration_ms)} ms.`
          : `${name} did not accept the test event: ${reason}, ${Math.round(duration_ms)} ms.`,
      );
      if (!delivered) process.exitCode = FAILED;
    },
  );
}

const FAILED = 1;
