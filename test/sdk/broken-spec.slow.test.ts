import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { root } from "#test/harness/process.ts";
import { typescriptProgram } from "./readme-program.ts";

/** Generates the client from a copy of the specs that was edited, and checks the README's code against its types. */
const readmeChecked = (edit: (text: string) => string): string => {
  const folder = mkdtempSync(join(root, "node_modules/.broken-spec-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  cpSync(join(root, "specs"), join(folder, "specs"), { recursive: true });
  const file = join(folder, "specs/schemas/chat.yaml");
  writeFileSync(file, edit(readFileSync(file, "utf8")));
  const generator = [
    "--import",
    "tsx",
    "scripts/generate.ts",
    "--specs",
    join(folder, "specs"),
    "--out",
    join(folder, "generated"),
  ];
  const generated = spawnSync(process.execPath, generator, { cwd: root, encoding: "utf8" });
  expect(generated.stderr).toBe("");
  const sdk = join(folder, "generated/clients/typescript");
  const given = "declare const body: string, secret: string, headers: Record<string, string>;";
  const program = typescriptProgram(readFileSync(join(sdk, "README.md"), "utf8"), given);
  writeFileSync(join(sdk, "readme.ts"), program.replaceAll(`"@agent-gateway/client"`, `"./src/index.ts"`));
  const options = [
    "--noEmit",
    "--strict",
    "--allowImportingTsExtensions",
    "--target",
    "es2023",
    "--lib",
    "es2023,esnext.disposable",
  ];
  const tsc = [
    join(root, "node_modules/typescript/bin/tsc"),
    ...options,
    "--module",
    "preserve",
    "--types",
    "node",
    "readme.ts",
  ];
  return spawnSync(process.execPath, tsc, { cwd: sdk, encoding: "utf8" }).stdout;
};

test("the README's code fits the client of the contract", () => {
  expect(readmeChecked((text) => text)).toBe("");
});

test("a field of a reply that is renamed breaks the README's code", () => {
  const words = readmeChecked((text) => text.replaceAll(/\breply\b(?=[:,])/g, "answer"));
  expect(words).toContain("Property 'reply' does not exist");
});

test("a field of a request that is renamed breaks the README's code", () => {
  const words = readmeChecked((text) =>
    text.replace("required: [message]", "required: [words]").replace("    message: {", "    words: {"),
  );
  expect(words).toContain("'message' does not exist");
});
