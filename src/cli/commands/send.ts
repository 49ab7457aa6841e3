import type { Command } from "commander";
import { calling } from "../calling.ts";
import { print } from "../terminal.ts";
import { textOf } from "../values.ts";

type SendOptions = {
  session?: string;
  user?: string;
  model?: string;
  skill?: string[];
  stream: boolean;
  idempotencyKey?: string;
};

export function addSend(program: Command): void {
  calling<SendOptions>(
    program
      .command("send")
      .summary("send a message to an agent, and print the reply")
      .description("Sends a message to an agent, and prints the reply as it is written.")
      .argument("<agent>", "the agent's name")
      .argument("<text>", "the message; @FILE for the text of a file, - for standard input")
      .option("--session <id>", "the session to continue (default: a new one)")
      .option("--user <name>", "the person who sends the message; chooses the session")
      .option("--model <name>", "another model of the agent")
      .option("--skill <name...>", "skills whose instructions are added")
      .option("--no-stream", "print the reply when it is complete")
      .option("--idempotency-key <key>", "a repeated call with the same key does not start another turn")
      .addHelpText(
        "after",
        "\nWith --json, the command prints the events of the reply, one per line, or with --no-stream the whole answer.\n\nExamples:\n  agent-gateway send main 'What changed since yesterday?'\n  git diff | agent-gateway send reviewer - --no-stream\n  agent-gateway send main 'And before that?' --session chat:01M7YQ8J7JR99XHGJ9RZDRF9ZE",
      ),
    async ({ gateway, options, signal }, agent = "", text = "") => {
      const { session, user, model, skill, stream, idempotencyKey } = options;
      const body = {
        agent,
        message: textOf(text),
        ...(session && { session_id: session }),
        ...(user && { user_id: user }),
        ...(model && { model }),
        ...(skill && { skill_ids: skill }),
      };
      if (stream) {
        const { printStream } = await import("../streaming.ts");
        return await printStream(gateway.chat.stream(body, { signal, idempotencyKey }), options);
      }
      const { withProgress } = await import("../terminal.ts");
      const reply = await withProgress(
        "waiting for the reply",
        Promise.resolve(gateway.chat.send(body, { signal, idempotencyKey })),
      );
      print(options.json ? JSON.stringify(reply, null, 2) : options.quiet ? reply.turn_id : reply.reply);
    },
  );
}
