import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { root } from "#test/harness/process.ts";
import { checkPython } from "./python-check.ts";
import { pythonProgram, typescriptProgram } from "./readme-program.ts";

/** The clients of a copy of the specs in which a field of a request and one of a reply have other names. */
let clients: string;
beforeAll(() => {
  const folder = mkdtempSync(join(root, "node_modules/.broken-spec-"));
  cpSync(join(root, "specs"), join(folder, "specs"), { recursive: true });
  const edit = (name: string, change: (text: string) => string): void => {
    const file = join(folder, "specs/schemas", name);
    writeFileSync(file, change(readFileSync(file, "utf8")));
  };
  edit("chat.yaml", (text) => text.replaceAll(/\breply\b(?=[:,])/g, "answer"));
  edit("hooks.yaml", (text) =>
    text.replace("required: [text]", "required: [words]").replace("    text: {", "    words: {"),
  );
  const out = join(folder, "generated");
  const generator = ["--import", "tsx", "scripts/generate.ts", "--specs", join(folder, "specs"), "--out", out];
  const generated = spawnSync(process.execPath, generator, { cwd: root, encoding: "utf8" });
  expect(generated.stderr).toBe("");
  clients = join(out, "clients");
  return () => rmSync(folder, { recursive: true, force: true });
});

/** The type checkers of the languages, each with its output for the code in the client's README. */
const languages = {
  TypeScript(): string {
    const sdk = join(clients, "typescript");
    const given = "declare const body: string, secret: string, headers: Record<string, string>;";
    const program = typescriptProgram(readFileSync(join(sdk, "README.md"), "utf8"), given);
    writeFileSync(join(sdk, "readme.ts"), program.replaceAll(`"@agent-gateway/client"`, `"./src/index.ts"`));
    const options = ["--noEmit", "--strict", "--allowImportingTsExtensions", "--target", "es2023"];
    const more = ["--lib", "es2023,esnext.disposable", "--module", "preserve", "--types", "node", "readme.ts"];
    const tsc = join(root, "node_modules/typescript/bin/tsc");
    return spawnSync(process.execPath, [tsc, ...options, ...more], { cwd: sdk, encoding: "utf8" }).stdout;
  },
  Python(): string {
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
    return checkPython(sdk);
  },
};

// The clients' own tests check it with the unchanged contract.
test.each([
  ["TypeScript", "Property 'reply' does not exist", "'text' does not exist"],
  ["Python", 'Cannot access attribute "reply"', `No parameter named "text"`],
] as const)(
  "the code of the README for %s breaks when a field of a reply or of a request is renamed",
  (language, noField, noArgument) => {
    const words = languages[language]();
    expect(words).toContain(noField);
    expect(words).toContain(noArgument);
  },
);
