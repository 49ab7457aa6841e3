import { describe, expect, it } from "vitest";
import { createLogger } from "#observe/logger.ts";

async function logged(secrets: string[], fields: object, format: "json" | "pretty" = "json"): Promise<string> {
  let text = "";
  const write = (more: string) => {
    text += more;
  };
  const logger = createLogger({ level: "info", format, write, maxStringChars: 100 });
  logger.hide(secrets);
  logger.log("info", "first", { harmless: "stays" });
  logger.log("info", "second", fields);
  await logger.flush();
  expect(text).toContain("stays");
  return text;
}

const secret = 'tok"en\\with/odd chars+1';

describe.each(["json", "pretty"] as const)("as %s, a hidden secret", (format) => {
  it.each([
    ["as it is", { value: `before ${secret} after` }],
    ["as a name", { inner: { [secret]: 1 } }],
    ["in a URL", { value: `/x?t=${encodeURIComponent(secret)}` }],
    ["as a subprotocol", { value: `bearer.${Buffer.from(secret).toString("base64url")}` }],
    ["in base64", { value: `Basic ${Buffer.from(secret).toString("base64")}` }],
    ["in an error", { error: new Error(`refused ${secret}`) }],
    ["where the value is cut", { value: `${"x".repeat(95)}${secret}${"y".repeat(50)}` }],
  ])("never appears %s", async (_, fields) => {
    const text = await logged([secret], fields, format);
    const forms = [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret)];
    forms.push(...(["base64url", "base64"] as const).map((way) => Buffer.from(secret).toString(way)));
    for (const form of forms) expect(text).not.toContain(form);
    expect(text).not.toContain("tok");
    if (format === "json") for (const line of text.trim().split("\n")) JSON.parse(line);
  });
});

it("leaves a line valid JSON if a secret is a number", async () => {
  const text = await logged(["8675309"], { value: 18675309, text: "call 8675309" });
  expect(text).not.toContain("8675309");
  expect(JSON.parse(text.trim().split("\n")[1] as string)).toMatchObject({ value: "[hidden]", text: "call [hidden]" });
});

it("hides the longer of two secrets with the same beginning", async () => {
  const text = await logged(["secret-one", "secret-one-and-more"], { value: "a secret-one-and-more b" });
  expect(text).toContain('"a [hidden] b"');
});

it.each([
  "authorization",
  "Authorization",
  "x-gateway-token",
  "token",
  "tokens",
  "client_secret",
  "Cookie",
  "set-cookie",
  "apiKey",
  "password",
  "x-hub-signature",
])("hides the value of %s, in any place", async (key) => {
  for (const format of ["json", "pretty"] as const) {
    const text = await logged(
      [],
      { [key]: "value-1", headers: { [key]: ["value-2"] }, list: [{ [key]: { a: "value-3" } }] },
      format,
    );
    expect(text).not.toContain("value-");
    expect(text.match(/\[hidden\]/g)).toHaveLength(3);
  }
});

it("shows counts and flags under such a name", async () => {
  expect(await logged([], { tokens: 12, inner: { secret: false } })).toContain('"tokens":12,"inner":{"secret":false}');
});

it("hides current secrets as well as earlier ones", async () => {
  const rotated = Array.from({ length: 100 }, (_, n) => `rotated-token-number-${n}!`);
  const text = await logged(rotated, { first: rotated[0], last: rotated[99] });
  expect(text).not.toContain("rotated-token");
});
