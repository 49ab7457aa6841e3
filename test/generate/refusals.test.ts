import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { bundle } from "../../scripts/generate/bundle.ts";
import { configRoot, configShapes } from "../../scripts/generate/config-types.ts";
import { readErrors } from "../../scripts/generate/errors.ts";
import { readTools } from "../../scripts/generate/mcp.ts";
import { readOperations } from "../../scripts/generate/operations.ts";
import { readMethods } from "../../scripts/generate/rpc-types.ts";
import { openSpecs } from "../../scripts/generate/spec-files.ts";
import { configValidators } from "../../scripts/generate/surfaces.ts";
import { pinnedSpecs } from "./pinned.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "generate-refusals-"));
  cpSync(pinnedSpecs, folder, { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Replaces a part of a spec that occurs once. */
function edit(file: string, from: string, to: string): void {
  const path = join(folder, file);
  const [before, after, more] = readFileSync(path, "utf8").split(from);
  if (after === undefined || more !== undefined) throw new Error(`${file} must hold once: ${from}`);
  writeFileSync(path, before + to + after);
}

function readAll(): void {
  const specs = openSpecs(folder);
  const errors = readErrors(specs);
  const [openapi, openrpc] = [bundle(specs, "openapi.yaml", "openapi"), bundle(specs, "openrpc.json", "openrpc")];
  readOperations(openapi, errors);
  readMethods(openrpc, errors);
  readTools(openapi, openrpc);
  bundle(specs, "pushes.yaml", "asyncapi");
  configValidators(configShapes(bundle(specs, "config.schema.yaml", "schema")), configRoot);
}

test("accepts the pinned specs", () => {
  expect(readAll).not.toThrow();
});

describe("refuses unknown keywords, with their place", () => {
  test.each([
    [
      "shapes/common.yaml",
      "description: One run.",
      "descripton: One run.",
      '#/TurnId: the generator does not know "descripton"',
    ],
    [
      "shapes/common.yaml",
      "description: One run.",
      "nullable: true",
      '#/TurnId: the generator does not know "nullable"',
    ],
    [
      "chat.yaml",
      "maxLength: 5",
      "maxLenght: 5",
      'specs/chat.yaml#/Message/properties/message: the generator does not know "maxLenght"',
    ],
    [
      "chat.yaml",
      "x-scope: chat",
      "x-scope: chat\n    x-cache: 5",
      'specs/chat.yaml#/send/post: the generator does not know "x-cache"',
    ],
    [
      "openrpc.json",
      '"x-idempotent": true',
      '"x-slow": true',
      'specs/openrpc.json#/methods/1: the generator does not know "x-slow"',
    ],
    [
      "pushes.yaml",
      "summary: A turn ended.",
      "x-stream: session",
      'the generator does not know "x-stream" on a message',
    ],
    [
      "errors.yaml",
      "retry: true",
      "again: true",
      'specs/errors.yaml#/errors/busy: the generator does not know "again"',
    ],
    [
      "config.schema.yaml",
      "minProperties: 1",
      "minItem: 1",
      'specs/config.schema.yaml#/properties/agents: the generator does not know "minItem"',
    ],
  ])("%s: %s became %s: %s", (file, from, to, message) => {
    edit(file, from, to);
    expect(readAll).toThrow(message);
  });
});

describe("refuses an inconsistent contract", () => {
  test.each([
    [
      "chat.yaml",
      "shapes/responses.yaml#/Invalid",
      "shapes/responses.yaml#/Invald",
      "nothing is at specs/shapes/responses.yaml#/Invald",
    ],
    ["chat.yaml", "shapes/responses.yaml#/Invalid", "https://example.com/a.yaml#/Invalid", "leads out of the specs"],
    [
      "chat.yaml",
      "Accepted:\n",
      "TurnId: { type: string }\nAccepted:\n  description: d\n  not: { $ref: '#/TurnId' }\n",
      'both are called "TurnId"',
    ],
    ["openrpc.json", '"name": "turn.start",', '"name": "turn.start", "name": "turn.stop",', "Map keys must be unique"],
    [
      "chat.yaml",
      "[invalid-request, unauthenticated]",
      "[invalid-request, unauthentic]",
      "specs/errors.yaml has no row unauthentic",
    ],
    [
      "chat.yaml",
      "[invalid-request, unauthenticated]",
      "[invalid-request, unauthenticated, busy]",
      "it names busy, but has no problem with status 503",
    ],
    ["chat.yaml", "[invalid-request, unauthenticated]", "[unauthenticated]", "no error of x-errors has its status 400"],
    ["chat.yaml", "x-reply: accepted", "x-reply: completed", "two replies are called completed"],
    ["chat.yaml", "    x-stream: TurnEvent\n", "", "a reply of text/event-stream and x-stream belong together"],
    [
      "chat.yaml",
      "name: Idempotency-Key",
      "name: Idempotency",
      "x-idempotent needs the header parameter Idempotency-Key",
    ],
    ["chat.yaml", 'schema: { $ref: "#/Message" }', "schema: { type: object }", "a request body refers to a shape"],
    ["openrpc.json", '["unauthenticated", "invalid-request"]', '["hook-refused"]', "hook-refused has no RPC code"],
    [
      "openrpc.json",
      '{ "$ref": "#/components/errors/Unauthenticated" }, { "code": -32600,',
      '{ "$ref": "#/components/errors/Unauthenticated" }, { "code": -32601,',
      "it names invalid-request, but describes no error of code -32600",
    ],
    [
      "config.schema.yaml",
      '    discriminator: { propertyName: type, mapping: { memory: "#/$defs/MemoryStore" } }\n',
      "",
      "the shape Store: a choice with defaults in its members needs a discriminator",
    ],
    [
      "config.schema.yaml",
      "backend: { type: string, enum: [echo] }",
      "backend: { minimum: 1, enum: [echo] }",
      'missing type "number" for keyword "minimum"',
    ],
  ])("%s: %s became %s: %s", (file, from, to, message) => {
    edit(file, from, to);
    expect(readAll).toThrow(message);
  });
});

describe("refuses an x-mcp that is not a tool, with its place", () => {
  const MCP = "{ name: send, title: Send, hint: write, scope: admin }";
  const inTurns = (operation: string) =>
    `x-mcp: { name: turns, title: Turns, hint: read }\n      operationId: ${operation}`;
  const BODY = "  required: [message]\n  properties:\n    message: { type: string, minLength: 1, maxLength: 5 }\n";
  test.each([
    [
      "chat.yaml",
      MCP,
      "{ name: send, titel: Send }",
      'specs/chat.yaml#/send/post/x-mcp: the generator does not know "titel"',
    ],
    ["chat.yaml", MCP, "{ name: sendChat, title: Send, hint: write }", 'name must be snake_case, not "sendChat"'],
    [
      "chat.yaml",
      MCP,
      "{ name: ask_main, title: Send, hint: write }",
      "ask_main may be the name of an agent's or a skill's",
    ],
    ["chat.yaml", MCP, "{ name: send, hint: write }", "POST /chat/send: x-mcp: title is missing"],
    ["chat.yaml", MCP, "{ name: send, title: Send, hint: safe }", "hint must be one of read, write, destructive"],
    ["chat.yaml", MCP, "{ name: send, title: Send, hint: write, trusted: no }", "trusted must be true or false"],
    ["chat.yaml", MCP, "{ name: send, title: Send, hint: write, scope: console }", "scope may only be admin"],
    [
      "chat.yaml",
      MCP,
      "{ name: start_turn, title: Send, hint: write }",
      "turn.start: x-mcp: another tool is called start_turn",
    ],
    [
      "chat.yaml",
      "name: Idempotency-Key, in: header,",
      "name: Idempotency-Key, in: header, required: true,",
      "POST /chat/send: x-mcp: it needs a header",
    ],
    [
      "chat.yaml",
      "    requestBody:\n",
      "      - { name: message, in: query, schema: { type: string } }\n    requestBody:\n",
      "two of its arguments are called message",
    ],
    ["chat.yaml", BODY, `  minProperties: 1\n${BODY}`, 'its arguments cannot express "minProperties" of the body'],
    ["chat.yaml", `  additionalProperties: false\n${BODY}`, BODY, "its body is not a closed object"],
    ["chat.yaml", "      required: true\n", "      required: false\n", "an optional body has no required fields"],
    [
      "openapi.yaml",
      "operationId: turns.erase",
      inTurns("turns.erase"),
      "an operation with the scope console is not a tool",
    ],
    [
      "openapi.yaml",
      "operationId: hooks.wake",
      inTurns("hooks.wake"),
      "POST /hooks/wake: x-mcp: only operations of REST are tools",
    ],
    [
      "openapi.yaml",
      "operationId: turns.list",
      inTurns("turns.list"),
      "GET /turns: x-mcp: its answer is not a JSON object",
    ],
    ["openapi.yaml", "operationId: turns.events", inTurns("turns.events"), "x-mcp: it has no answer in JSON"],
    [
      "openapi.yaml",
      "operationId: turns.list",
      inTurns("turns.list").replace("read", "write"),
      "GET /turns: x-mcp: the hint of a GET must be `read`",
    ],
    [
      "openrpc.json",
      '"hint": "destructive"',
      '"hint": "write", "scope": "chat"',
      "turn.start: x-mcp: scope may only be admin",
    ],
  ])("%s: %s became %s: %s", (file, from, to, message) => {
    edit(file, from, to);
    expect(readAll).toThrow(message);
  });

  test("the thirteenth tool for operators", () => {
    const operations = Array.from(
      { length: 11 },
      (_, index) => `  /operator/${index}:
    get:
      operationId: operator.run
      x-surface: rest
      x-scope: admin
      x-mcp: { name: operate_${index}, title: Operate, hint: read }
      responses: { "200": { description: Done., content: { application/json: { schema: { type: object } } } } }
`,
    );
    edit("openapi.yaml", "paths:\n", `paths:\n${operations.join("")}`);
    const specs = openSpecs(folder);
    const read = () => readTools(bundle(specs, "openapi.yaml", "openapi"), bundle(specs, "openrpc.json", "openrpc"));
    expect(read).toThrow("specs/openrpc.json, turn.start: x-mcp: there are at most 12 tools for operators");
  });
});

test("names the cycle of a recursive shape in openrpc.json", () => {
  edit("shapes/common.yaml", "description: One run.", "not: { $ref: '#/Run' }");
  edit(
    "shapes/common.yaml",
    "TurnEvent:\n",
    "Run: { type: object, properties: { id: { $ref: '#/TurnId' } } }\nTurnEvent:\n",
  );
  expect(readAll).toThrow("specs/openrpc.json: the shape Run holds itself: Run -> TurnId -> Run");
});
