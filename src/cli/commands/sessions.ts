import type { Command } from "commander";
import type { types } from "#generated/clients/typescript/src/rpc.ts";
import { calling } from "../calling.ts";
import { confirmed } from "../confirm.ts";
import { cut, fields, oneLine, printItem, printList } from "../output.ts";
import { styled, withProgress } from "../terminal.ts";
import { count, shortTime, wholeNumber } from "../values.ts";

/** The most characters of the arguments, and of the result, of a tool call that are printed. */
const CALL_WIDTH = 200;

type ToolCall = NonNullable<types.Message["toolCalls"]>[number];

export function addSessions(program: Command): void {
  const sessions = program
    .command("sessions")
    .summary("conversations: list, show, compact, delete")
    .description("The conversations of the agents.");

  calling<{ agent?: string; limit: string; cursor?: string }>(
    sessions
      .command("list")
      .summary("list sessions, newest first")
      .option("--agent <name>", "only this agent")
      .option("--limit <n>", "the maximum number of rows", "20")
      .option("--cursor <cursor>", "the cursor that the previous page printed")
      .addHelpText(
        "after",
        "\nExamples:\n  agent-gateway sessions list --agent main\n  agent-gateway sessions list -q --limit 1",
      ),
    async ({ gateway, options, signal }) => {
      const { agent, cursor } = options;
      const params = {
        limit: wholeNumber(options.limit, "--limit"),
        ...(agent && { agentName: agent }),
        ...(cursor && { cursor }),
      };
      const page = await gateway.rpc.session.list(params, { signal });
      printList(options, page, {
        items: page.sessions,
        id: ({ sessionId }) => sessionId,
        none: "No sessions. agent-gateway send AGENT TEXT starts one.",
        columns: [
          { title: "SESSION", of: ({ sessionId }) => sessionId },
          { title: "AGENT", of: ({ agentName }) => agentName },
          { title: "MESSAGES", of: ({ messageCount }) => messageCount, right: true },
          { title: "LAST USED", of: ({ updatedAt }) => shortTime(updatedAt) },
        ],
        next: page.nextCursor,
      });
    },
  );

  calling<{ limit: string }>(
    sessions
      .command("show")
      .summary("show a session's messages")
      .argument("<session>", "its id")
      .option("--limit <n>", "the number of latest messages", "20")
      .addHelpText("after", "\nExample:\n  agent-gateway sessions show agent:main:main"),
    async ({ gateway, options, signal }, sessionId = "") => {
      const limit = wholeNumber(options.limit, "--limit");
      const session = await gateway.rpc.session.get({ sessionId, limit, includeCompacted: true }, { signal });
      printItem(options, session, sessionId, () => sessionWords(session));
    },
  );

  calling<{ keep?: string }>(
    sessions
      .command("compact")
      .summary("replace the older messages of a session by a summary")
      .argument("<session>", "its id")
      .option("--keep <n>", "the number of messages to keep")
      .addHelpText("after", "\nExample:\n  agent-gateway sessions compact agent:main:main --keep 20"),
    async ({ gateway, options, signal }, sessionId = "") => {
      const keep = options.keep === undefined ? {} : { keep: wholeNumber(options.keep, "--keep", 0) };
      const done = await withProgress("compacting", gateway.rpc.session.compact({ sessionId, ...keep }, { signal }));
      const { before, after, compacted, reason } = done;
      printItem(options, done, sessionId, () =>
        compacted
          ? `${sessionId} went from ${before.messages} to ${count(after.messages, "message")}, and from about ${before.tokens} to ${after.tokens} tokens.`
          : `Nothing was compacted. ${reason?.replace("`keep`", "--keep") ?? "There is nothing to compact."}`,
      );
    },
  );

  calling<{ yes?: boolean }>(
    sessions
      .command("delete")
      .summary("delete a session with all its messages")
      .argument("<session>", "its id")
      .option("--yes", "do not ask")
      .addHelpText("after", "\nExample:\n  agent-gateway sessions delete chat:01M7YQ8J7JR99XHGJ9RZDRF9ZE --yes"),
    async ({ gateway, options, signal }, sessionId = "") => {
      await confirmed(`Delete ${oneLine(sessionId)} with all its messages?`, options, signal);
      const done = await gateway.rpc.session.delete({ sessionId }, { signal });
      const turns =
        done.turnsCancelled === 0
          ? ""
          : ` ${count(done.turnsCancelled, "turn")} ${done.turnsCancelled === 1 ? "was" : "were"} cancelled.`;
      printItem(options, done, sessionId, () => `${sessionId} is deleted.${turns}`);
    },
  );
}

function sessionWords({ session, summary, messages, nextCursor }: types.SessionDetails): string {
  const { sessionId, agentName, channel, userId, messageCount, turnsQueued, createdAt, usage } = session;
  const head = fields({
    session: sessionId,
    agent: agentName,
    channel: channel ?? undefined,
    user: userId ?? undefined,
    messages: messageCount,
    queued: turnsQueued === 0 ? undefined : turnsQueued,
    tokens: usage.total,
    begun: shortTime(createdAt),
    summary: summary === null ? undefined : cut(oneLine(summary), 200),
  });
  // The newest is first in a reply, and last on a screen.
  const told = messages.toReversed().map(messageWords);
  const more = nextCursor === null ? [] : ["… older messages: --limit with a larger number"];
  return [head, "", ...more, ...told].join("\n");
}

function messageWords({ role, text, createdAt, toolCalls = [], compacted }: types.Message): string {
  const failed = toolCalls.filter(({ ok }) => !ok).length;
  const calls =
    toolCalls.length === 0 ? "" : ` (${count(toolCalls.length, "tool call")}${failed > 0 ? `, ${failed} failed` : ""})`;
  const head = `${shortTime(createdAt)}  ${styled("bold", role)}${calls}${compacted ? " (compacted)" : ""}`;
  return [head, ...toolCalls.map(callLine), text.replace(/^/gm, "  ")].join("\n");
}

function callLine({ tool, ok, ms, reason, arguments: args, result }: ToolCall): string {
  const parts = [tool, args, `${ok ? "→" : "failed:"} ${result ?? reason ?? ""}`, `(${Math.round(ms)} ms)`];
  const line = parts
    .map((part) => part && cut(oneLine(part), CALL_WIDTH))
    .filter(Boolean)
    .join(" ");
  return styled("dim", `  · ${line}`);
}
