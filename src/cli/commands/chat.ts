import type { Command } from "commander";
import { calling } from "../calling.ts";

export function addChat(program: Command): void {
  calling<{ session?: string; user?: string; model?: string }>(
    program
      .command("chat")
      .summary("talk with an agent")
      .description("Talks with an agent, in one session. Without a terminal, each line of standard input is a message.")
      .argument("<agent>", "the agent's name")
      .option("--session <id>", "the session to continue (default: a new one)")
      .option("--user <name>", "the person who sends the message; chooses the session")
      .option("--model <name>", "another model of the agent")
      .addHelpText(
        "after",
        "\nIn the chat, /new starts another session, /exit or Ctrl-D ends the chat, and Ctrl-C stops a reply. Any other line that begins with a slash is not sent; to send a slash, write two. Without a terminal, such a line ends the chat with exit code 2.\n\nExamples:\n  agent-gateway chat main\n  printf 'Hello\\nAnd now?\\n' | agent-gateway chat main",
      ),
    async (given, agent = "") => {
      const { talk } = await import("../talk.ts");
      await talk(given, agent);
    },
  );
}
