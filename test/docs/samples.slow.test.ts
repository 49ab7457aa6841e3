import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import ts from "typescript";
import { afterAll, beforeAll, expect, test } from "vitest";
import { root } from "#test/harness/process.ts";
import { checkPython } from "#test/sdk/python-check.ts";
import { buildSite } from "../../scripts/docs/site.ts";
import { readContract } from "../../scripts/generate/contract.ts";

const site = buildSite(readContract("specs"));
const reference = ["rest", "hooks", "rpc", "pushes"].map((name) => site[`${name}.md`]).join("\n");

/** The samples of a tab, without those that create the client. */
function samplesOf(fence: string): string[] {
  return [...reference.matchAll(new RegExp(`^\`\`\`${fence}\\n([\\s\\S]*?)\\n\`\`\`$`, "gm"))]
    .map(([, code = ""]) => code)
    .filter((code) => !/^(import|from) /.test(code));
}

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "samples-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function isOfOpenAi(code: string): boolean {
  return code.includes("client.");
}
const ours = join(root, "generated/clients/typescript/src/index.ts");
const OURS = `import { Gateway } from ${JSON.stringify(ours)};\nconst gateway = new Gateway();`;
const openAi = join(root, "node_modules/openai/index.mjs");
const OPENAI = `import OpenAI from ${JSON.stringify(openAi)};\nconst client = new OpenAI();`;

function checkTypeScript(samples: readonly string[], head = OURS): string[] {
  const file = join(folder, "samples.ts");
  const blocks = samples.map((code) => `{\n${code}\n}`).join("\n");
  writeFileSync(file, `${head}\n${blocks}\n`);
  const program = ts.createProgram([file], {
    target: ts.ScriptTarget.ES2023,
    lib: ["lib.es2024.d.ts", "lib.esnext.disposable.d.ts", "lib.dom.d.ts"],
    module: ts.ModuleKind.Preserve,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    moduleDetection: ts.ModuleDetectionKind.Force,
    allowImportingTsExtensions: true,
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    types: [],
  });
  const source = program.getSourceFile(file);
  return program
    .getSemanticDiagnostics(source)
    .concat(program.getSyntacticDiagnostics(source))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, "\n"));
}

function checkPythonSamples(samples: readonly string[]): string {
  const extraPaths = [join(root, "generated/clients/python/src")];
  writeFileSync(
    join(folder, "pyrightconfig.json"),
    JSON.stringify({ include: ["samples.py"], extraPaths, pythonVersion: "3.9", typeCheckingMode: "standard" }),
  );
  const code = `from agent_gateway import Gateway\n\ngateway = Gateway()\n${samples.join("\n")}\n`;
  writeFileSync(join(folder, "samples.py"), code);
  return checkPython(folder);
}

test("the samples in TypeScript compile with the client", () => {
  const samples = samplesOf("ts TypeScript").filter((code) => !isOfOpenAi(code));
  expect(samples.length).toBeGreaterThan(50);
  expect(checkTypeScript(samples)).toEqual([]);
  expect(checkTypeScript([`await gateway.chat.send({ mesage: "Hello" });`])).toHaveLength(1);
});

test("the samples for the OpenAI-compatible API compile with OpenAI's client, and exist in Python, too", () => {
  const samples = samplesOf("ts TypeScript").filter(isOfOpenAi);
  expect(samples.length).toBeGreaterThan(4);
  expect(checkTypeScript(samples, OPENAI)).toEqual([]);
  expect(checkTypeScript([`await client.chat.completions.create({ modle: "main" });`], OPENAI)).toHaveLength(1);
  const python = samplesOf("python Python").filter(isOfOpenAi);
  expect(python).toHaveLength(samples.length);
  for (const code of python)
    expect(spawnSync("python3", ["-c", "import ast, sys; ast.parse(sys.argv[1])", code]).status, code).toBe(0);
});

test("the samples in Python match the types of the client", () => {
  const samples = samplesOf("python Python").filter((code) => !isOfOpenAi(code));
  expect(samples.length).toBeGreaterThan(50);
  expect(checkPythonSamples(samples)).toContain("0 errors");
  expect(checkPythonSamples([`gateway.chat.send(mesage="Hello")`])).toContain('No parameter named "mesage"');
});

test("a stream is read with curl -N", () => {
  const streams = samplesOf("sh curl").filter((code) => /"stream":true|\/turns\/[^/]+\/events /.test(code));
  expect(streams.length).toBeGreaterThan(2);
  expect(streams.filter((code) => !code.startsWith("curl -N "))).toEqual([]);
});
