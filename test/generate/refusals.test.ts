import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { bundle } from "../../scripts/generate/bundle.ts";
import { configRoot, configShapes } from "../../scripts/generate/config-types.ts";
import { readErrors } from "../../scripts/generate/errors.ts";
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
  readOperations(bundle(specs, "openapi.yaml", "openapi"), errors);
  readMethods(bundle(specs, "openrpc.json", "openrpc"), errors);
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
    ["chat.yaml", "x-scope: chat", "x-scope: all", "x-scope must be one of chat, admin, console"],
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
      "openrpc.json",
      '"name": "turn.start",\n      "summary": "Start a turn",\n      "paramStructure": "by-name"',
      '"name": "turn.start",\n      "paramStructure": "either"',
      "paramStructure must be by-name",
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

test("names the cycle of a recursive shape in openrpc.json", () => {
  edit("shapes/common.yaml", "description: One run.", "not: { $ref: '#/Run' }");
  edit(
    "shapes/common.yaml",
    "TurnEvent:\n",
    "Run: { type: object, properties: { id: { $ref: '#/TurnId' } } }\nTurnEvent:\n",
  );
  expect(readAll).toThrow("specs/openrpc.json: the shape Run holds itself: Run -> TurnId -> Run");
});
