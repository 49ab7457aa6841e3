import type { Command } from "commander";
import type { types } from "#generated/clients/typescript/src/rpc.ts";
import { calling } from "../calling.ts";
import { cut, fields, oneLine, printItem, printList, safe } from "../output.ts";
import { styled } from "../terminal.ts";

export const addSessions = (program: Command): void => {
  const sessions = program
    .command("sessions")
    .summary("conversations: list, show, compact, delete")
    .description("The conversations of the agents.");

  calling<{ agent?: string; limit?: string; cursor?: string }>(
    sessions
      .command("list")
      .summary("list sessions, the most recent first")
      .option("--agent <name>", "of one agent")
      .option("--limit <n>", "how many (default: 20)")
      .option("--cursor <cursor>", "go on after the page that printed it")
      .addHelpText(
        "after",
        "\nExamples:\n  agent-gateway sessions list --agent main\n  agent-gateway sessions list -q | head -1",
      ),
    async ({ gateway, options, signal }) => {
      const { agent, limit = "20", cursor } = options;
      const params = { ...(agent && { agentName: agent }), ...(cursor && { cursor }), limit: Number(limit) };
      const page = await gateway.rpc.session.list(params, { signal });
      printList(options, page, {
        items: page.sessions,
        id: ({ sessionId }) => sessionId,
        none: "No session is there. agent-gateway send AGENT TEXT begins one.",
        columns: [
          { title: "SESSION", of: ({ sessionId }) => cut(sessionId, 60) },
          { title: "AGENT", of: ({ agentName }) => agentName },
          { title: "MESSAGES", of: ({ messageCount }) => messageCount, right: true },
          { title: "LAST ACTIVITY", of: ({ updatedAt }) => updatedAt },
        ],
        next: page.nextCursor,
      });
    },
  );

  calling<{ limit?: string }>(
    sessions
      .command("show")
      .summary("show a session's messages")
      .argument("<session>", "its id")
      .option("--limit <n>", "how many messages, the latest (default: 20)")
      .addHelpText("after", "\nExample:\n  agent-gateway sessions show agent:main:main"),
    async ({ gateway, options, signal }, sessionId = "") => {
      const session = await gateway.rpc.session.get({ sessionId, limit: Number(options.limit ?? 20) }, { signal });
      printItem(
        options,
        session,
        sessionId,
        () =>
          `${fields({ session: sessionId, agent: session.session.agentName })}\n\n${session.messages.map(messageLine).join("\n")}`,
      );
    },
  );
};

const messageLine = ({ role, text }: types.Message): string => `${styled("bold", oneLine(role))}  ${safe(text)}`;
