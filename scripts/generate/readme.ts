/** A line about each generated file. The list is checked: a file without a line here is not written. */
const files: [pattern: RegExp, name: string, what: string][] = [
  [/^README\.md$/, "README.md", "This page."],
  [
    /^openapi\.json$/,
    "openapi.json",
    "REST and webhooks, the whole contract in one document. Served at `/openapi.json`.",
  ],
  [/^openrpc\.json$/, "openrpc.json", "The RPC methods, likewise. Served at `/openrpc.json`."],
  [
    /^config\.schema\.json$/,
    "config.schema.json",
    "The configuration's JSON Schema in one file. An editor that is shown it completes and checks.",
  ],
  [/^errors\.ts$/, "errors.ts", "Every error: its RPC code, HTTP status, title and meaning."],
  [/^routes\.ts$/, "routes.ts", "Every HTTP operation: its path, scope, errors, limits and replies."],
  [/^methods\.ts$/, "methods.ts", "Every RPC method: its permission, params and errors."],
  [
    /^rest-types\.ts$/,
    "rest-types.ts",
    "Types of REST and webhooks. What has a default is present, but may be left out in `…Sent`, which is what callers write.",
  ],
  [/^rpc-types\.ts$/, "rpc-types.ts", "Types of the methods' params and results."],
  [/^push-types\.ts$/, "push-types.ts", "Types of what the WebSocket pushes."],
  [/^config-types\.ts$/, "config-types.ts", "Types of the configuration, with its defaults and as a person writes it."],
  [
    /^rest-handlers\.ts$/,
    "rest-handlers.ts",
    "The interface that `src/handlers/rest` satisfies. A missing operation does not compile.",
  ],
  [/^openai-handlers\.ts$/, "openai-handlers.ts", "The same for `src/handlers/openai`."],
  [/^hooks-handlers\.ts$/, "hooks-handlers.ts", "The same for `src/handlers/hooks`."],
  [/^rpc-handlers\.ts$/, "rpc-handlers.ts", "The same for `src/handlers/rpc`."],
  [/^mcp-tools\.ts$/, "mcp-tools.ts", "The tools of the MCP door: every operation and method with `x-mcp`."],
  [
    /^validators\//,
    "validators/",
    "Validators of what is received, compiled ahead of time, a module for each surface. They need no library; only their types are committed.",
  ],
  [
    /^clients\/typescript\//,
    "clients/typescript/",
    "The TypeScript client as a package, `@agent-gateway/client`. Its README says how to use it.",
  ],
  [/^clients\/python\//, "clients/python/", "The Python client as a package, `agent-gateway-client`. Likewise."],
];

export function printReadme(paths: string[]): string {
  const unnamed = paths.find((path) => !files.some(([pattern]) => pattern.test(path)));
  if (unnamed !== undefined) throw new Error(`the generated file ${unnamed} has no line in the generated README`);
  return `# Generated code

Everything here is written by \`npm run generate\` from \`specs/\`. Do not edit it: change the specs, generate, and commit the
result by itself. \`npm run generate:check\` says whether it is up to date. Nothing here imports from \`src/\`.

JavaScript is machine code and is not committed. Every build writes it: \`npm ci\`, \`npm run build\` and \`npm test\` do.

| File | What it is |
|---|---|
${files.map(([, name, what]) => `| \`${name}\` | ${what} |`).join("\n")}

## Calling the gateway

\`clients/typescript\` and \`clients/python\` are packages of their own; \`npm run build:clients\` makes them ready to be published.
`;
}
