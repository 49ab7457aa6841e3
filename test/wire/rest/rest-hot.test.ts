import { beforeAll, expect, it } from "vitest";
import openapi from "#generated/openapi.json" with { type: "json" };
import { routes } from "#generated/routes.ts";
import { bodies } from "#generated/validators/rest-bodies.js";
import type { Route } from "#wire/call/routes.ts";
import { restPart } from "#wire/pages/documents.ts";
import { createRequestValidation, type ValidateRequest, validateHot } from "#wire/rest/rest-validation.ts";

// The bodies of the most frequent operations are validated by validators that were compiled in advance. express-openapi-validator reads the same
// contract, and must give the same result, with the same defaults.

const hot = (routes as readonly Route[]).filter(({ operation }) => operation in bodies);
let validate: ValidateRequest;
beforeAll(async () => {
  validate = await createRequestValidation(restPart(openapi));
});

const ASKED = new Error("Express is asked");
const ahead: ValidateRequest = validateHot(() => Promise.reject(ASKED));

type Request = { text: string; query?: string; headers?: Record<string, string> };
type Verdict = { body: unknown; query: unknown } | "refused";

async function judge(
  hold: ValidateRequest,
  route: Route,
  { text, query = "", headers = {} }: Request,
): Promise<Verdict> {
  try {
    return await hold({ method: route.method, url: route.path + query, headers }, JSON.parse(text), route);
  } catch {
    return "refused";
  }
}

function long(length: number): string {
  return "x".repeat(length);
}
const VALUES: unknown[] = [
  null,
  true,
  false,
  0,
  -1,
  1.5,
  1e300,
  [],
  [1],
  [""],
  ["x"],
  ["x", "x"],
  {},
  { a: 1 },
  [[]],
  [null],
  "",
  " ",
  "x",
  "main",
  "Main",
  "a b",
  "a/b",
  "summarise-thread",
  "é",
  "👋",
  "\ud800",
  "\u0000",
  "~",
  "\n",
  "__proto__",
  ...[31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1_000].map(long),
  "👋".repeat(64),
  "👋".repeat(65),
  "👋".repeat(128),
  "👋".repeat(129),
  "é".repeat(256),
  "é".repeat(257),
  ...[64, 65].map((length) => Array.from({ length }, (_, n) => `skill-${n}`)),
];
const NAMES = Object.keys(openapi.components.schemas.ChatRequest.properties);

const corpus = function* (): Generator<Request> {
  for (const value of VALUES) yield { text: JSON.stringify(value) };
  for (const name of [...NAMES, "surprise", "__proto__", "constructor", "", "Message"])
    for (const value of VALUES) {
      // Built as text, because an object would treat `__proto__` differently.
      const field = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
      yield { text: `{${field}}` };
      yield { text: `{"message":"hi",${field}}` };
      yield { text: `{"message":"hi","stream":true,"session_id":"a:b","skill_ids":["x"],${field}}` };
    }
  const text = '{"message":"hi"}';
  for (const query of ["?", "?a=1", "?message=hi", "?=", "?%00"]) yield { text, query };
  for (const key of ["", " ", "x", " x", "x ", "a b", "ü", "a\tb", "\u007f", "~", "!", long(255), long(256)])
    yield { text, headers: { "idempotency-key": key } };
};

it.each(hot)("accepts the same requests of $operation as express-openapi-validator", async (route) => {
  const verdicts = { taken: 0, refused: 0 };
  for (const request of corpus()) {
    const ours = await judge(ahead, route, request);
    const oracle = await judge(validate, route, request);
    // Express handles an address with a question mark, whatever follows it.
    if (request.query === undefined || ours !== "refused") expect([request, ours]).toEqual([request, oracle]);
    verdicts[ours === "refused" ? "refused" : "taken"]++;
  }
  expect(verdicts.taken).toBeGreaterThan(100);
  expect(verdicts.refused).toBeGreaterThan(100);
});

it("passes all other requests to Express, which writes the refusal", async () => {
  const [route] = hot as [Route];
  const asked = { method: "POST", url: route.path, headers: {} };
  await expect(validateHot(validate)(asked, { message: 7 }, route)).rejects.toMatchObject({
    name: "invalid-request",
    detail: "message must be a string.",
  });
  await expect(ahead(asked, {}, { ...route, operation: "skills.trigger" })).rejects.toBe(ASKED);
});
