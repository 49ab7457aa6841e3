import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { parse } from "yaml";

const root = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "lint-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

type Fault = [file: string, text: string, fault: string];

/** A fault for each of our rules. */
const FAULTS: Record<string, Fault> = {
  "rule/operation-names": ["rest/config.yaml", "operationId: config.get", "operationId: getConfig"],
  "rule/method-names": ["openrpc.json", '"name": "system.health"', '"name": "health"'],
  "rule/method-params": ["openrpc.json", '"paramStructure": "by-name"', '"paramStructure": "by-position"'],
  "rule/surfaces": ["rest/identity.yaml", "x-surface: rest", "x-surface: soap"],
  "rule/scopes": ["rest/skills.yaml", "x-scope: chat", "x-scope: all"],
  "rule/scopes-of-keys": ["hooks/wake.yaml", "x-surface: hooks", "x-surface: hooks\n    x-scope: chat"],
  "rule/errors": ["hooks/agent.yaml", "x-errors:", "x-faults:"],
  "rule/error-responses": [
    "rest/codes.yaml",
    '"414": { $ref: ../schemas/responses.yaml#/UriTooLong }',
    '"414": { description: The address is too long., content: {} }',
  ],
  "rule/problems": ["schemas/responses-chat.yaml", "application/problem+json", "application/json"],
  "rule/problem-schema": ["schemas/responses-recorder.yaml", "problem.yaml#/Problem", "ops.yaml#/Readiness"],
  "rule/rest-fields": ["schemas/agents.yaml", "    agent_name:", "    agentName:"],
};

/** The rules of ours that find something in the specs with these faults. */
function findRules(faults: Record<string, Fault>): string[] {
  cpSync(join(root, "specs"), join(folder, "specs"), { recursive: true });
  cpSync(join(root, "redocly.yaml"), join(folder, "redocly.yaml"));
  for (const [name, [file, text, fault]] of Object.entries(faults)) {
    const path = join(folder, "specs", file);
    const before = readFileSync(path, "utf8");
    expect(before, name).toContain(text);
    writeFileSync(path, before.replace(text, fault));
  }
  const files = ["specs/openapi.yaml", "specs/openrpc.json"];
  const { stdout } = spawnSync(join(root, "node_modules/.bin/redocly"), ["lint", ...files, "--format", "checkstyle"], {
    cwd: folder,
    encoding: "utf8",
    env: { ...process.env, REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" },
  });
  return [...new Set([...stdout.matchAll(/source="(rule\/[\w-]+)"/g)].map(([, rule]) => rule as string))].toSorted();
}

test("each of our rules for specs finds its fault", () => {
  const { rules } = parse(readFileSync(join(root, "redocly.yaml"), "utf8"));
  const ours = Object.keys(rules).filter((rule) => rule.startsWith("rule/"));
  expect(Object.keys(FAULTS).toSorted()).toEqual(ours.toSorted());
  expect(findRules(FAULTS)).toEqual(Object.keys(FAULTS).toSorted());
});

const RESPONSES = '      "500": { $ref: ../schemas/responses.yaml#/Internal }';
test.each([
  ["a 402 in place", '"402": { description: Pay. }', ["rule/error-responses"]],
  ["a 410 in place", '"410": { description: Gone. }', ["rule/error-responses"]],
  [
    "a 502 with its own type and schema",
    '"502": { description: No., content: { application/json: { schema: { type: object } } } }',
    ["rule/error-responses", "rule/problems"],
  ],
])("the rules for errors find %s", (_, response, rules) => {
  expect(findRules({ it: ["rest/identity.yaml", RESPONSES, `      ${response}\n${RESPONSES}`] })).toEqual(rules);
});
