import { auditCommand } from "./command.ts";

const out = { print: console.log, complain: console.error };
process.exitCode = await auditCommand(process.argv.slice(2), process.env, out);
