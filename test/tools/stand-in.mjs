// A server of tools as the tests play it: the Model Context Protocol over standard input and output, line by line. Its first argument says how it misbehaves.
import { createInterface } from "node:readline";
import { answerOf } from "./stand-in-answers.mjs";

const [how = "good"] = process.argv.slice(2);
if (how === "silent") setInterval(() => {}, 1_000);
else if (how === "exits") process.exit(3);
else {
  if (how === "chatty") process.stdout.write("Welcome to the server!\n{\n");
  createInterface({ input: process.stdin }).on("line", (line) => {
    const message = JSON.parse(line);
    if (message.method === "tools/call" && message.params.name === "crash") process.exit(1);
    if (message.method === "tools/call" && message.params.name === "endless") {
      const more = () => process.stdout.write("x".repeat(65_536), () => setImmediate(more));
      more();
      return;
    }
    const answer = answerOf(message, how);
    if (answer) process.stdout.write(`${JSON.stringify(answer)}\n`);
  });
}
