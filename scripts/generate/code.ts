import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { configRoot, configShapes } from "./config-types.ts";
import { type Contract, readContract } from "./contract.ts";
import type { Output } from "./output.ts";
import { configValidators, httpValidators, rpcValidators, socketCallValidators } from "./surfaces.ts";

/** The generated code that is not committed, with its types: fast to generate, so that every build does it. */
export function generateCode(folder: string): Output {
  return compile(readContract(folder));
}

/** This code is not committed: `npm run generate` writes it, and so does every build. */
export function isCommitted(path: string): boolean {
  return !path.endsWith(".js");
}

export function compile(contract: Contract): Output {
  const { openapi, openrpc, asyncapi, config, operations, methods, socketCalls } = contract;
  return {
    ...httpValidators(openapi.components.schemas ?? {}, operations),
    ...rpcValidators(openrpc.components.schemas ?? {}, methods),
    ...socketCallValidators(asyncapi.components.schemas ?? {}, socketCalls),
    ...configValidators(configShapes(config), configRoot),
    ...copiedValidators(),
  };
}

/** Code that does not depend on the specs. Its imports of generated files become relative; validators stay plain JavaScript. */
function copiedValidators(): Output {
  const folder = fileURLToPath(new URL("runtime/validators/", import.meta.url));
  const output: Output = {};
  for (const name of readdirSync(folder).sort()) {
    const header = `// Copied by "npm run generate" from scripts/generate/runtime/validators/${name}; do not edit.\n`;
    const source = readFileSync(folder + name, "utf8").replaceAll(`"#generated/`, `"../`);
    const isCode = name !== "validate.ts";
    const target = isCode ? name.replace(/\.ts$/, ".js") : name;
    output[`validators/${target}`] = header + (isCode ? toJavaScript(source) : source);
  }
  return output;
}

function toJavaScript(source: string): string {
  return ts.transpileModule(source, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, newLine: ts.NewLineKind.LineFeed },
  }).outputText;
}
