// A server of tools as the tests play it: the Model Context Protocol over standard input and output, line by line. Its first argument says how it misbehaves.
import { createInterface } from "node:readline";
import { answerOf, requestOf } from "./stand-in-answers.mjs";

const [how = "good"] = process.argv.slice(2);
if (how === "silent") setInterval(() => {}, 1_000);
else if (how === "exits") process.exit(3);
else {
  if (how === "floods") for (let n = 0; n < 20_000; n++) process.stdout.write(`${requestOf("roots/list", n)}\n`);
  /** What its own requests were answered, and who waits for the last of those. */
  const answers = [];
  let whenAnswered = () => {};
  if (how === "chatty") process.stdout.write("Welcome to the server!\n{\n");
  createInterface({ input: process.stdin }).on("line", (line) => {
    const message = JSON.parse(line);
    if (message.method === "tools/call" && message.params.name === "crash") process.exit(1);
    // For good, and deaf to whatever else comes.
    if (message.method === "tools/call" && message.params.name === "stuck") for (;;);
    // It says no more, and takes its time to end.
    if (message.method === "tools/call" && message.params.name === "lingers") {
      process.on("SIGTERM", () => {});
      process.stdout.end();
      setInterval(() => {}, 1_000);
      return;
    }
    if (message.method === "tools/call" && message.params.name === "endless") {
      const more = () => process.stdout.write("x".repeat(65_536), () => setImmediate(more));
      more();
      return;
    }
    const { id, method, params } = message;
    if (method === undefined) {
      answers.push(message.error?.code ?? "answered");
      whenAnswered();
      return;
    }
    const write = (one) => process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...one })}\n`);
    if (method === "tools/call" && params.name === "refuse") {
      write({ id, error: { code: Number(params.arguments.text), message: "The quota is used up." } });
      return;
    }
    if (method === "tools/call" && params.name === "other") {
      write({ id: id + 1_000, result: { content: [{ type: "text", text: "not yours" }] } });
      return;
    }
    if (method === "tools/call" && params.name === "ask") {
      const [what, count] = params.arguments.text.split(" ");
      for (let n = 0; n < Number(count); n++) process.stdout.write(`${requestOf(what, n)}\n`);
      whenAnswered = () => {
        if (answers.length === Number(count))
          write({ id, result: { content: [{ type: "text", text: answers.join() }] } });
      };
      return;
    }
    if (method === "tools/call" && params.name === "tell") {
      for (let n = 0; n < 100_000; n++)
        write({ method: "notifications/progress", params: { progressToken: id, progress: n } });
      write({ id, result: { content: [{ type: "text", text: "enough" }] } });
      return;
    }
    if (method === "tools/call" && params.name === "flood") {
      for (let n = 0; n < 5_000; n++) write({ method: "notifications/tools/list_changed" });
      for (let n = 0; n < 5_000; n++) write({ method: "notifications/message", params: { level: "info", data: n } });
      write({ id, result: { content: [{ type: "text", text: "enough" }] } });
      return;
    }
    const answer = answerOf(message, how);
    if (answer) process.stdout.write(`${JSON.stringify(answer)}\n`);
  });
}
