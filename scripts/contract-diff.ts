import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Contract, compareContracts } from "./contract-diff/contracts.ts";
import type { Change } from "./contract-diff/schemas.ts";
import type { Bundle } from "./generate/bundle.ts";
import { readContract } from "./generate/code.ts";
import type { JsonObject } from "./generate/json.ts";

const HELP = `npm run contract:diff -- [options]

Compares the contract of specs/ with that of the last release, in specs/released/, and fails if it breaks somebody.

  --all          print changes that break nobody, too
  --renew        take today's contract as that of the last release
  --specs DIR    the folder of the contract (default: specs)
  --released DIR the folder of the last release's (default: specs/released)
  --help         print this
`;

const FILES = ["openapi", "openrpc", "pushes"] as const;

const whole = ({ document, components }: Bundle): JsonObject => ({ ...document, components });

const presentContract = (folder: string): Contract => {
  const { openapi, openrpc, asyncapi } = readContract(folder);
  return { openapi: whole(openapi), openrpc: whole(openrpc), pushes: whole(asyncapi) };
};

const releasedContract = (folder: string): Contract => {
  const read = (name: string): JsonObject => {
    const file = join(folder, `${name}.json`);
    try {
      return JSON.parse(readFileSync(file, "utf8"));
    } catch (error) {
      throw new Error(
        `${file} cannot be read: ${(error as Error).message}. npm run contract:diff -- --renew writes it.`,
      );
    }
  };
  return { openapi: read("openapi"), openrpc: read("openrpc"), pushes: read("pushes") };
};

/** The changes, each under who notices it. */
const told = (changes: readonly Change[]): string => {
  const byWho = new Map<string, string[]>();
  for (const { who, where, what, breaks } of changes)
    byWho.set(who, [
      ...(byWho.get(who) ?? []),
      `  ${breaks ? "breaks" : "note  "}  ${where === "" ? "" : `${where}: `}${what}`,
    ]);
  return [...byWho].map(([who, lines]) => `${who}\n${[...new Set(lines)].join("\n")}`).join("\n");
};

const run = (): unknown => {
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({ options: { all: flag, renew: flag, help: flag, specs: text, released: text } });
  if (values.help) return process.stdout.write(HELP);
  const released = values.released ?? "specs/released";
  const present = presentContract(values.specs ?? "specs");
  if (values.renew) {
    mkdirSync(released, { recursive: true });
    for (const name of FILES) writeFileSync(join(released, `${name}.json`), `${JSON.stringify(present[name])}\n`);
    return console.log(`${released} holds today's contract.`);
  }
  const changes = compareContracts(releasedContract(released), present);
  const breaking = changes.filter(({ breaks }) => breaks);
  const shown = values.all ? changes : breaking;
  if (shown.length > 0) console.log(told(shown));
  if (breaking.length === 0)
    return console.log(`Nothing breaks: ${changes.length} changes since the last release, each by addition.`);
  console.error(
    `\n${breaking.length} changes break somebody. Bring it back, or add beside it and mark the old one \`deprecated\`. If it must be, it is another major version: npm run contract:diff -- --renew.`,
  );
  process.exitCode = 1;
  return undefined;
};

try {
  run();
} catch (error) {
  console.error(`${(error as Error).message}\n\n${HELP}`);
  process.exitCode = 2;
}
