import { createInterface } from "node:readline";
import type { Calling } from "./calling.ts";
import { CliError, exitCodeOf, NOT_ALLOWED, USAGE, wordsFor } from "./failures.ts";
import { forTerminal, isTerminal, printPieces, say, styled } from "./terminal.ts";
import { asTyped } from "./typed.ts";

type Talk = Calling<{ session?: string; user?: string; model?: string }>;

/** Any other line that starts with a slash is a mistake, and is not sent. */
const COMMANDS = "/new begins another session, /exit ends, // begins a message with a slash.";

/** A conversation, a line of standard input a message. */
export async function talk({ gateway, address, options, signal }: Talk, agent: string): Promise<void> {
  if (address.key === undefined)
    throw (
      address.unused.key ??
      new CliError("There is no key for sending messages.", NOT_ALLOWED, "pass --key, or set REST_API_KEY")
    );
  const isPerson = process.stdin.isTTY && isTerminal(process.stdout);
  const lines = createInterface({
    input: process.stdin,
    output: isPerson ? process.stdout : undefined,
    terminal: isPerson,
    prompt: forTerminal(styled("bold", "> ")),
  });
  let session = options.session;
  let writing: AbortController | undefined;
  // At the prompt Ctrl-C ends the talk; while a reply is written it ends the reply.
  lines.on("SIGINT", () => (writing ? writing.abort() : lines.close()));
  signal.addEventListener("abort", () => lines.close());

  if (isPerson) say(`You talk with ${agent}${session ? ` in ${session}` : ""}. ${COMMANDS}`);
  lines.prompt();
  for await (const line of lines) {
    const message = line.trim();
    if (message === "/exit") break;
    if (message === "/new") {
      session = undefined;
      say("The next message begins another session.");
    } else if (message === "/help") {
      say(COMMANDS);
    } else if (/^\/(?!\/)/.test(message)) {
      const ends = isPerson ? "" : " The chat ends here: this line and those after it were not sent.";
      say(`${message.split(/\s/)[0]} is not a command${isPerson ? ", and was not sent" : ""}.${ends} ${COMMANDS}`);
      if (!isPerson) {
        process.exitCode = USAGE;
        break;
      }
    } else if (message !== "") {
      writing = new AbortController();
      try {
        session = await answer(message.replace(/^\/\//, "/"), writing.signal);
      } catch (error) {
        if (signal.aborted) break;
        if (!writing.signal.aborted) say(`\n${wordsFor(error, "agent-gateway chat")}`);
        if (!isPerson) {
          process.exitCode = exitCodeOf(error);
          break;
        }
      }
      writing = undefined;
    }
    if (isPerson) lines.prompt();
  }
  lines.close();
  if (isPerson && session) say(asTyped(`\nTo continue: agent-gateway chat ${agent} --session ${session}`));

  /** Sends a message, prints the reply, and gives the session that it is in. */
  async function answer(message: string, stop: AbortSignal): Promise<string> {
    const { user, model } = options;
    const body = {
      agent,
      message,
      ...(session && { session_id: session }),
      ...(user && { user_id: user }),
      ...(model && { model }),
    };
    const started = await gateway.chat.start(body, { signal: AbortSignal.any([signal, stop]) });
    const cancel = () => void gateway.turns.cancel(started.turn_id).catch(() => {});
    stop.addEventListener("abort", cancel, { once: true });
    await printPieces(gateway.turns.events(started.turn_id, {}, { signal: AbortSignal.any([signal, stop]) }).text());
    return started.session_id;
  }
}
