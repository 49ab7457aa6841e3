// Runs `npm run generate` with the arguments of each line of its input, one run after another, and answers each with a line.
import { createInterface } from "node:readline";
import { generateCommand } from "../../scripts/generate/command.ts";

for await (const line of createInterface({ input: process.stdin })) {
  let output = "";
  const code = await generateCommand(JSON.parse(line), (text) => {
    output += `${text}\n`;
  });
  console.log(JSON.stringify({ code, output }));
}
