import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { root } from "#test/harness/process.ts";
import { checkPython } from "./python-check.ts";
import { pythonProgram, typescriptProgram } from "./readme-program.ts";

/** Generates the clients from a copy of the specs that was edited. */
const clientsOf = (edit: (text: string) => string): string => {
  const folder = mkdtempSync(join(root, "node_modules/.broken-spec-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(join(root, "specs"), join(folder, "specs"), { recursive: true });
  const file = join(folder, "specs/schemas/chat.yaml");
  writeFileSync(file, edit(readFileSync(file, "utf8")));
  const out = join(folder, "generated");
  const generator = ["--import", "tsx", "scripts/generate.ts", "--specs", join(folder, "specs"), "--out", out];
  const generated = spawnSync(process.execPath, generator, { cwd: root, encoding: "utf8" });
  expect(generated.stderr).toBe("");
  return join(out, "clients");
};

/** The type checkers of the languages, each with its words about the code in the client's README. */
const languages = {
  TypeScript(clients: string): string {
    const sdk = join(clients, "typescript");
    const given = "declare const body: string, secret: string, headers: Record<string, string>;";
    const program = typescriptProgram(readFileSync(join(sdk, "README.md"), "utf8"), given);
    writeFileSync(join(sdk, "readme.ts"), program.replaceAll(`"@agent-gateway/client"`, `"./src/index.ts"`));
    const options = ["--noEmit", "--strict", "--allowImportingTsExtensions", "--target", "es2023"];
    const more = ["--lib", "es2023,esnext.disposable", "--module", "preserve", "--types", "node", "readme.ts"];
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    return spawnSync(process.execPath, [tsc, ...options, ...more], { cwd: sdk, encoding: "utf8" }).stdout;
  },
  Python(clients: string): string {
    const sdk = join(clients, "python");
    const given = "from typing import Dict\nbody: str\nsecret: str\nheaders: Dict[str, str]\n";
    const program = pythonProgram(readFileSync(join(sdk, "README.md"), "utf8"));
    writeFileSync(join(sdk, "readme.py"), `${given}${program}`);
    const settings = {
      include: ["readme.py"],
      extraPaths: ["src"],
      pythonVersion: "3.9",
      reportUnboundVariable: false,
    };
    writeFileSync(join(sdk, "pyrightconfig.json"), JSON.stringify(settings));
    return checkPython(sdk).includes("0 errors, 0 warnings") ? "" : checkPython(sdk);
  },
};

describe.each([
  ["TypeScript", "Property 'reply' does not exist", "'message' does not exist"],
  ["Python", 'Cannot access attribute "reply"', `No parameter named "message"`],
] as const)("the code of the README for %s", (language, noField, noArgument) => {
  const checked = (edit: (text: string) => string): string => languages[language](clientsOf(edit));

  test("fits the client of the contract", () => {
    expect(checked((text) => text)).toBe("");
  });

  test("breaks when a field of a reply is renamed", () => {
    expect(checked((text) => text.replaceAll(/\breply\b(?=[:,])/g, "answer"))).toContain(noField);
  });

  test("breaks when a field of a request is renamed", () => {
    const renamed = checked((text) =>
      text.replace("required: [message]", "required: [words]").replace("    message: {", "    words: {"),
    );
    expect(renamed).toContain(noArgument);
  });
});
