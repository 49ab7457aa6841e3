import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { type Bundle, bundle } from "./bundle.ts";
import { configRoot, configSchema, configShapes, configTypes } from "./config-types.ts";
import { printConfiguration } from "./configuration.ts";
import { printErrors, readErrors } from "./errors.ts";
import { printHandlers } from "./handlers.ts";
import type { JsonObject } from "./json.ts";
import { readOperations } from "./operations.ts";
import type { Output } from "./output.ts";
import { pushTypes, readPushes, readSocketCalls } from "./push-types.ts";
import { printReadme } from "./readme.ts";
import { printReference } from "./reference/page.ts";
import { printRestClient } from "./rest-client.ts";
import { printRoutes } from "./routes.ts";
import { rpcFiles } from "./rpc.ts";
import { readMethods, rpcTypes } from "./rpc-types.ts";
import { openSpecs } from "./spec-files.ts";
import { configValidators, httpValidators, pushValidators, rpcValidators, socketCallValidators } from "./surfaces.ts";
import { restTypes } from "./types.ts";
import { printWriters } from "./writers.ts";

/** Everything that generated/ holds, from the specs of a folder alone: the same specs give the same bytes. */
export async function generate(folder: string): Promise<Output> {
  const specs = openSpecs(folder);
  const errors = readErrors(specs);
  const openapi = bundle(specs, "openapi.yaml", "openapi");
  const openrpc = bundle(specs, "openrpc.json", "openrpc");
  const asyncapi = bundle(specs, "pushes.yaml", "asyncapi");
  const config = bundle(specs, "config.schema.yaml", "schema");
  const operations = readOperations(openapi, errors);
  const methods = readMethods(openrpc, errors);
  const pushes = readPushes(asyncapi);
  const socketCalls = readSocketCalls(asyncapi);
  const wholeRpc = whole(openrpc);

  const output: Output = {
    "openapi.json": printJson(whole(openapi)),
    "openrpc.json": printJson(wholeRpc),
    "config.schema.json": printJson(configSchema(config)),
    "errors.ts": printErrors(errors),
    "reference.ts": printReference({
      openapi,
      openrpc,
      asyncapi,
      errors,
      pushes,
      socketCalls,
      config: configSchema(config),
    }),
    "routes.ts": printRoutes(operations),
    "rest-handlers.ts": printHandlers("rest", operations),
    "openai-handlers.ts": printHandlers("openai", operations),
    "hooks-handlers.ts": printHandlers("hooks", operations),
    // OpenAI's own clients call the others.
    "clients/rest.ts": printRestClient(operations.filter(({ surface }) => surface !== "openai")),
    "rpc-types.ts": await rpcTypes(openrpc, methods),
    "push-types.ts": await pushTypes(asyncapi, pushes),
    "config-types.ts": await configTypes(config),
    ...(await restTypes(openapi)),
    ...(await rpcFiles(wholeRpc)),
    ...httpValidators(openapi.components.schemas ?? {}, operations),
    ...rpcValidators(openrpc.components.schemas ?? {}, methods, errors),
    ...pushValidators(asyncapi.components.schemas ?? {}, pushes),
    ...socketCallValidators(asyncapi.components.schemas ?? {}, socketCalls),
    ...configValidators(configShapes(config), configRoot),
    "writers/replies.ts": printWriters(openapi.components.schemas ?? {}, operations),
    ...copied(),
  };
  output["README.md"] = printReadme(Object.keys(output));
  return Object.fromEntries(Object.entries(output).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The pages of docs/ that are written from the specs. */
export const generatePages = (folder: string): Output => ({
  "configuration.md": printConfiguration(configSchema(bundle(openSpecs(folder), "config.schema.yaml", "schema"))),
});

const whole = ({ document, components }: Bundle): JsonObject => ({ ...document, components });
const printJson = (value: JsonObject): string => `${JSON.stringify(value, null, 2)}\n`;

/** Code that does not depend on the specs. Its imports of generated files become relative; validators stay plain JavaScript. */
function copied(): Output {
  const folder = fileURLToPath(new URL("runtime/", import.meta.url));
  const output: Output = {};
  for (const part of ["clients", "validators", "writers"]) {
    for (const name of readdirSync(`${folder}${part}`).sort()) {
      const header = `// Copied by "npm run generate" from scripts/generate/runtime/${part}/${name}; do not edit.\n`;
      const source = readFileSync(`${folder}${part}/${name}`, "utf8").replaceAll(`"#generated/`, `"../`);
      const isCode = part === "validators" && name !== "validate.ts";
      const target = isCode ? name.replace(/\.ts$/, ".js") : name;
      output[`${part}/${target}`] = header + (isCode ? toJavaScript(source) : source);
    }
  }
  return output;
}

const toJavaScript = (source: string): string =>
  ts.transpileModule(source, {
    compilerOptions: { target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext, newLine: ts.NewLineKind.LineFeed },
  }).outputText;
