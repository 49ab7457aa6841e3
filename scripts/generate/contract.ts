import { bundle } from "./bundle.ts";
import { readErrors } from "./errors.ts";
import { readTools } from "./mcp.ts";
import { readOperations } from "./operations.ts";
import { readPushes, readSocketCalls } from "./push-types.ts";
import { readMethods } from "./rpc-types.ts";
import { openSpecs } from "./spec-files.ts";

export type Contract = ReturnType<typeof readContract>;

/** The complete contract in `folder`. Throws a SpecError if a file cannot be read or does not match the others. */
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
    tools: readTools(openapi, openrpc),
    pushes: readPushes(asyncapi),
    socketCalls: readSocketCalls(asyncapi),
  };
}
