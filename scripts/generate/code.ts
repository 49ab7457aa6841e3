import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { bundle } from "./bundle.ts";
import { configRoot, configShapes } from "./config-types.ts";
import { readErrors } from "./errors.ts";
import { readOperations } from "./operations.ts";
import type { Output } from "./output.ts";
import { readPushes, readSocketCalls } from "./push-types.ts";
import { readMethods } from "./rpc-types.ts";
import { openSpecs } from "./spec-files.ts";
import { configValidators, httpValidators, rpcValidators, socketCallValidators } from "./surfaces.ts";

/** The machine code of generated/, with its types: quick to make, so that every build makes it. */
export const generateCode = (folder: string): Output => compile(readContract(folder));

/** Machine code is not committed: `npm run generate` writes it, and so does every build. */
export const isCommitted = (path: string): boolean => !path.endsWith(".js");

type Contract = ReturnType<typeof readContract>;

export function readContract(folder: string) {
  const specs = openSpecs(folder);
  const errors = readErrors(specs);
  const openapi = bundle(specs, "openapi.yaml", "openapi");
  const openrpc = bundle(specs, "openrpc.json", "openrpc");
  const asyncapi = bundle(specs, "pushes.yaml", "asyncapi");
  return {
    errors,
    openapi,
    openrpc,
    asyncapi,
    config: bundle(specs, "config.schema.yaml", "schema"),
    operations: readOperations(openapi, errors),
    methods: readMethods(openrpc, errors),
    pushes: readPushes(asyncapi),
    socketCalls: readSocketCalls(asyncapi),
  };
}

export const compile = (contract: Contract): Output => {
  const { openapi, openrpc, asyncapi, config, operations, methods, socketCalls } = contract;
  return {
    ...httpValidators(openapi.components.schemas ?? {}, operations),
    ...rpcValidators(openrpc.components.schemas ?? {}, methods),
    ...socketCallValidators(asyncapi.components.schemas ?? {}, socketCalls),
    ...configValidators(configShapes(config), configRoot),
    ...copiedValidators(),
  };
};

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

const toJavaScript = (source: string): string =>
  ts.transpileModule(source, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, newLine: ts.NewLineKind.LineFeed },
  }).outputText;
