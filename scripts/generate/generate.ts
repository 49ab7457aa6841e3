import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Bundle } from "./bundle.ts";
import { compile } from "./code.ts";
import { configSchema, configTypes } from "./config-types.ts";
import { printConfiguration } from "./configuration.ts";
import { readContract } from "./contract.ts";
import { printErrors } from "./errors.ts";
import { printHandlers } from "./handlers.ts";
import { type JsonObject, object, text } from "./json.ts";
import { printTools, printToolTable } from "./mcp.ts";
import type { Output } from "./output.ts";
import { pushTypes } from "./push-types.ts";
import { printReadme } from "./readme.ts";
import { printRoutes } from "./routes.ts";
import { rpcFiles } from "./rpc.ts";
import { rpcTypes } from "./rpc-types.ts";
import { describeSdk } from "./sdk/description.ts";
import { pythonSdk } from "./sdk/python.ts";
import { typescriptSdk } from "./sdk/typescript.ts";
import { SpecError } from "./spec-files.ts";
import { restTypes } from "./types.ts";

/** The complete content of generated/, from the specs of a folder only: the same specs give the same bytes. */
export async function generate(folder: string): Promise<Output> {
  const contract = readContract(folder);
  const { errors, openapi, openrpc, asyncapi, config, operations, methods, tools, pushes } = contract;
  const wholeRpc = whole(openrpc);
  const sdk = describeSdk(contract);
  const version = text(object(openapi.document.info).version);

  const output: Output = {
    "openapi.json": printJson(whole(openapi)),
    "openrpc.json": printJson(wholeRpc),
    "config.schema.json": printJson(configSchema(config)),
    "errors.ts": printErrors(errors),
    "routes.ts": printRoutes(operations),
    "rest-handlers.ts": printHandlers("rest", operations),
    "openai-handlers.ts": printHandlers("openai", operations),
    "hooks-handlers.ts": printHandlers("hooks", operations),
    "rpc-types.ts": await rpcTypes(openrpc, methods),
    "push-types.ts": await pushTypes(asyncapi, pushes),
    "config-types.ts": await configTypes(config),
    "mcp-tools.ts": printTools(tools),
    "rest-types.ts": await restTypes(openapi),
    ...(await rpcFiles(wholeRpc)),
    ...compile(contract),
    ...typescriptSdk(sdk, version),
    ...pythonSdk(sdk, version),
  };
  output["README.md"] = printReadme(Object.keys(output));
  return Object.fromEntries(Object.entries(output).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** The pages of docs/ that are generated from the specs, completely or between two comments. */
export function generatePages(folder: string, pages: string): Output {
  const { config, tools } = readContract(folder);
  const region = /(<!-- operator tools -->\n)[\s\S]*?(<!-- end of operator tools -->)/;
  const page = readFileSync(join(pages, "mcp.md"), "utf8");
  if (!region.test(page)) throw new SpecError(join(pages, "mcp.md"), `no text matches ${region}`);
  return {
    "configuration.md": printConfiguration(configSchema(config)),
    "mcp.md": page.replace(region, (_, begin: string, end: string) => `${begin}\n${printToolTable(tools)}\n\n${end}`),
  };
}

function whole({ document, components }: Bundle): JsonObject {
  return { ...document, components };
}
function printJson(value: JsonObject): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}
