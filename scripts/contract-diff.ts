import { contractDiff } from "./contract-diff/command.ts";

process.exitCode = contractDiff(process.argv.slice(2), { print: console.log, complain: console.error });
