import { beforeAll, describe, expect, test } from "vitest";
import type { HooksOperation } from "#generated/hooks-handlers.ts";
import openapi from "#generated/openapi.json" with { type: "json" };
import { routes } from "#generated/routes.ts";
import { GatewayError } from "#kit/errors.ts";
import type { Route } from "#test/harness/contract.ts";
import { isIdempotencyKey } from "#wire/call/idempotency-key.ts";
import { readHookBody } from "#wire/hooks/hooks-call.ts";
import { createRequestValidation, type ValidateRequest } from "#wire/rest/rest-validation.ts";

// The webhooks' door has its bodies checked by validators that were compiled ahead. express-openapi-validator reads the same contract,
// and has to come to the same verdict.

const hooks = (routes as readonly Route[]).filter(({ surface }) => surface === "hooks");
/** As `restPart` has it of REST: nothing is asked of replies. */
const document = {
  ...openapi,
  components: { schemas: openapi.components.schemas, parameters: openapi.components.parameters },
  paths: Object.fromEntries(
    Object.entries(openapi.paths as Record<string, { post?: object }>)
      .filter(([path]) => path.startsWith("/hooks"))
      .map(([path, { post }]) => {
        return [path, { post: { ...post, security: [], responses: { default: { description: "" } } } }];
      }),
  ),
};
let validate: ValidateRequest;
beforeAll(async () => {
  validate = await createRequestValidation(document, hooks);
});

type Verdict = "taken" | "refused";
const oracleOf = async (route: Route, body: unknown, headers: Record<string, string> = {}): Promise<Verdict> => {
  const { path } = route;
  const asked = { method: "POST", url: path.replace("{name}", "x"), headers };
  try {
    await validate(asked, body, route);
    return "taken";
  } catch (error) {
    expect(error).toBeInstanceOf(GatewayError);
    expect((error as GatewayError).name).toBe("invalid-request");
    return "refused";
  }
};
const oursOf = ({ operation }: Route, text: string): Verdict => {
  try {
    readHookBody(operation as HooksOperation, Buffer.from(text));
    return "taken";
  } catch (error) {
    expect((error as GatewayError).name).toBe("invalid-request");
    return "refused";
  }
};

const long = (length: number) => "x".repeat(length);
const VALUES: unknown[] = [
  ...[null, true, false, 0, -1, 1.5, 1e300, [], [1], {}, { a: 1 }, { a: { b: [null] } }, [[]]],
  ...[
    "",
    " ",
    "x",
    "now",
    "next-heartbeat",
    "NOW",
    "none",
    "announce",
    "webhook:x",
    "webhook:",
    "webhook: ",
    "webhook:x ",
  ],
  ...[
    "webhook:ü",
    "webhook:\n",
    "webhook:a b",
    "Webhook:x",
    "agent:main:main",
    "é",
    "👋",
    "\ud800",
    "\u0000",
    "__proto__",
  ],
  ...[64, 65, 128, 129, 247, 248, 249, 256, 257, 1_000].flatMap((length) => [
    long(length),
    `webhook:${long(length - 8)}`,
  ]),
  // As many letters as two code units each.
  ...["👋".repeat(64), "👋".repeat(65), "👋".repeat(128), "👋".repeat(129)],
];
const FIELDS: Record<string, { usual: object; names: string[] }> = {
  "hooks.wake": { usual: { text: "hi" }, names: ["text", "metadata", "agent", "mode"] },
  "hooks.agent": {
    usual: { message: "hi" },
    names: ["message", "model", "channel", "session", "context", "agent", "delivery"],
  },
};

describe.each(hooks)("$operation", (route) => {
  const corpus = function* (): Generator<string> {
    for (const value of VALUES) yield JSON.stringify(value);
    const { usual, names } = FIELDS[route.operation] ?? { usual: {}, names: ["a", "__proto__", ""] };
    for (const name of [...names, "surprise", "__proto__", "constructor", "", "a/b", "~", "0"])
      for (const value of VALUES) {
        // Put together as text, as an object would make something else of `__proto__`.
        const field = `${JSON.stringify(name)}:${JSON.stringify(value)}`;
        yield `{${field}}`;
        yield `{${JSON.stringify(usual).slice(1, -1)}${Object.keys(usual).length > 0 ? "," : ""}${field}}`;
      }
    yield `{"text":"hi","text":7}`;
    yield `{"message":7,"message":"hi"}`;
  };

  test("takes and refuses the same bodies as express-openapi-validator", async () => {
    const verdicts = { taken: 0, refused: 0 };
    for (const text of corpus()) {
      const ours = oursOf(route, text);
      expect(`${ours} ${text.slice(0, 300)}`).toBe(`${await oracleOf(route, JSON.parse(text))} ${text.slice(0, 300)}`);
      verdicts[ours]++;
    }
    expect(verdicts.taken).toBeGreaterThan(50);
    expect(verdicts.refused).toBeGreaterThan(10);
  });
});

test("takes and refuses the same idempotency keys as express-openapi-validator", async () => {
  const [route] = hooks as [Route];
  const keys = [
    "",
    " ",
    "x",
    " x",
    "x ",
    "a b",
    "ü",
    "a\tb",
    "\u007f",
    "~",
    "!",
    long(255),
    long(256),
    "a".padEnd(300),
  ];
  for (const key of keys) {
    const verdict = await oracleOf(route, { text: "hi" }, { "idempotency-key": key });
    expect(`${JSON.stringify(key)} ${isIdempotencyKey(key) ? "taken" : "refused"}`).toBe(
      `${JSON.stringify(key)} ${verdict}`,
    );
  }
});
