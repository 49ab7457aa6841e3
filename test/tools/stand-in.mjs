// An MCP server for tests, over standard input and output, line by line. Its arguments specify its fault and its revision.
import { createInterface } from "node:readline";
import { acknowledgementOf, answerOf, requestOf } from "./stand-in-answers.mjs";

const [how = "good", revision] = process.argv.slice(2);
if (how === "silent") setInterval(() => {}, 1_000);
else if (how === "exits") process.exit(3);
else {
  if (how === "floods") for (let n = 0; n < 20_000; n++) process.stdout.write(`${requestOf("roots/list", n)}\n`);
  /** The answers to its own requests, and the waiter for the last of them. */
  const answers = [];
  let whenAnswered = () => {};
  let isGreeted = false;
  if (how === "chatty") process.stdout.write("Welcome to the server!\n{\n");
  const write = (one) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...one })}\n`);
  const say = (id, text) => write({ id, result: { resultType: "complete", content: [{ type: "text", text }] } });
  const endless = () => process.stdout.write("x".repeat(65_536), () => setImmediate(endless));
  /** The failing calls; any other is answered as by the server over HTTP. */
  const calls = {
    crash: () => process.exit(1),
    // Permanently, and ignoring all other messages.
    stuck() {
      for (;;);
    },
    // It sends nothing more, and ends slowly.
    lingers() {
      process.on("SIGTERM", () => {});
      process.stdout.end();
      setInterval(() => {}, 1_000);
    },
    endless,
    refuse: (id, code) => write({ id, error: { code: Number(code), message: "The quota is used up." } }),
    other: (id) => say(id + 1_000, "not yours"),
    ask(id, text) {
      const [what, count] = text.split(" ");
      for (let n = 0; n < Number(count); n++) process.stdout.write(`${requestOf(what, n)}\n`);
      whenAnswered = () => answers.length === Number(count) && say(id, answers.join());
    },
    tell(id) {
      for (let n = 0; n < 100_000; n++)
        write({ method: "notifications/progress", params: { progressToken: id, progress: n } });
      say(id, "enough");
    },
    flood(id) {
      for (let n = 0; n < 5_000; n++) write({ method: "notifications/tools/list_changed" });
      for (let n = 0; n < 5_000; n++) write({ method: "notifications/message", params: { level: "info", data: n } });
      say(id, "enough");
    },
  };
  createInterface({ input: process.stdin }).on("line", (line) => {
    const message = JSON.parse(line);
    const { id, method, params } = message;
    if (how === "shy" && method !== "initialize" && !isGreeted) process.exit(3);
    isGreeted = true;
    if (method === "subscriptions/listen")
      return void process.stdout.write(`${JSON.stringify(acknowledgementOf(message))}\n`);
    if (method === undefined) {
      answers.push(message.error?.code ?? "answered");
      whenAnswered();
      return;
    }
    const call = method === "tools/call" ? calls[params.name] : undefined;
    if (call) return void call(id, params.arguments?.text);
    const answer = answerOf(message, how, revision);
    if (answer) process.stdout.write(`${JSON.stringify(answer)}\n`);
  });
}
