import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import type { Bundle } from "../generate/bundle.ts";
import { readContract } from "../generate/contract.ts";
import type { JsonObject } from "../generate/json.ts";
import { type Contract, compareContracts } from "./contracts.ts";
import type { Change } from "./schemas.ts";

const HELP = `npm run contract:diff -- [options]

Compares the contract of specs/ with that of the last release, in specs/released/, and fails if a change breaks callers.

  --all          print compatible changes, too
  --renew        store the current contract as that of the last release
  --specs DIR    the folder of the contract (default: specs)
  --released DIR the folder of the last release's (default: specs/released)
  --help         print this
`;

const FILES = ["openapi", "openrpc", "pushes"] as const;

function whole({ document, components }: Bundle): JsonObject {
  return { ...document, components };
}

function presentContract(folder: string): Contract {
  const { openapi, openrpc, asyncapi } = readContract(folder);
  return { openapi: whole(openapi), openrpc: whole(openrpc), pushes: whole(asyncapi) };
}

function releasedContract(folder: string): Contract {
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
}

/** The changes, grouped by the side that they affect. */
function told(changes: readonly Change[]): string {
  const byWho = new Map<string, string[]>();
  for (const { who, where, what, breaks } of changes)
    byWho.set(who, [
      ...(byWho.get(who) ?? []),
      `  ${breaks ? "breaks" : "note  "}  ${where === "" ? "" : `${where}: `}${what}`,
    ]);
  return [...byWho].map(([who, lines]) => `${who}\n${[...new Set(lines)].join("\n")}`).join("\n");
}

/** The standard output and error of a command. */
type Out = { print: (text: string) => void; complain: (text: string) => void };

/** Runs the command with its arguments, and returns its exit code. */
export function contractDiff(args: readonly string[], out: Out): number {
  try {
    return run(args, out);
  } catch (error) {
    out.complain(`${(error as Error).message}\n\n${HELP}`);
    return 2;
  }
}

function run(args: readonly string[], { print, complain }: Out): number {
  const text = { type: "string" } as const;
  const flag = { type: "boolean", default: false } as const;
  const options = { all: flag, renew: flag, help: flag, specs: text, released: text };
  const { values } = parseArgs({ args: [...args], options });
  if (values.help) {
    print(HELP);
    return 0;
  }
  const released = values.released ?? "specs/released";
  const present = presentContract(values.specs ?? "specs");
  if (values.renew) {
    mkdirSync(released, { recursive: true });
    for (const name of FILES) writeFileSync(join(released, `${name}.json`), `${JSON.stringify(present[name])}\n`);
    print(`${released} holds today's contract.`);
    return 0;
  }
  const changes = compareContracts(releasedContract(released), present);
  const breaking = changes.filter(({ breaks }) => breaks);
  const shown = values.all ? changes : breaking;
  if (shown.length > 0) print(told(shown));
  if (breaking.length === 0) {
    print(`No breaking changes: ${changes.length} changes since the last release, all additions.`);
    return 0;
  }
  complain(
    `\n${breaking.length} breaking changes. Restore the old form, or add the new form next to it and mark the old one \`deprecated\`. If a change must break callers, release a new major version: npm run contract:diff -- --renew.`,
  );
  return 1;
}
