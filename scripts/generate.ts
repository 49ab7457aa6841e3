import { generateCommand } from "./generate/command.ts";

process.exitCode = await generateCommand(process.argv.slice(2), console.error);
