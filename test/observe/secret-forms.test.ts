import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRedactor } from "#observe/redact.ts";

function redacting(...secrets: string[]) {
  const redactor = createRedactor();
  redactor.hide(secrets);
  return redactor;
}

function percent(text: string, upper: boolean): string {
  return [...Buffer.from(text)]
    .map((byte) => {
      const digits = byte.toString(16).padStart(2, "0");
      return `%${upper ? digits.toUpperCase() : digits}`;
    })
    .join("");
}
function unicode(text: string): string {
  return text.replace(/[\s\S]/g, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** Texts with the secret, by their names; `before` and `after` surround it. */
const WRITTEN: Record<string, (secret: string, before: string, after: string) => string> = {
  "as it is": (secret, before, after) => before + secret + after,
  "in JSON": (secret, before, after) => JSON.stringify({ [before]: `${after}${secret}${before}` }),
  "in JSON within JSON": (secret) => JSON.stringify(JSON.stringify({ secret })),
  "with a slash as PHP escapes it": (secret) => JSON.stringify(secret).replaceAll("/", "\\/"),
  "as Unicode escapes": (secret) => unicode(secret),
  "in a query": (secret, before) => `/x?${new URLSearchParams({ before, secret })}`,
  "as a component of a URI": (secret, _, after) => `/x/${encodeURIComponent(secret)}/${encodeURIComponent(after)}`,
  "with every byte percent-encoded": (secret) => percent(secret, true),
  "in small hexadecimal digits": (secret) => percent(secret, false),
  "percent-encoded twice": (secret) => encodeURIComponent(encodeURIComponent(secret)),
  "percent-encoded in JSON": (secret) => JSON.stringify({ url: `/x?key=${percent(secret, false)}` }),
  "in an address as the URL parser writes it": (secret, before) =>
    String(new URL(`http://h/?${encodeURIComponent(before)}=${secret.replace(/[#&%+\p{Cc} ]/gu, encodeURIComponent)}`)),
  "in base64 behind other text": (secret, before, after) => Buffer.from(before + secret + after).toString("base64"),
  "in base64url behind other text": (secret, before, after) =>
    Buffer.from(before + secret + after).toString("base64url"),
  "as Basic credentials in JSON": (secret) =>
    JSON.stringify({ authorization: `Basic ${Buffer.from(`user:${secret}`).toString("base64")}` }),
  "in base64 in a query": (secret) => encodeURIComponent(Buffer.from(secret).toString("base64")),
  "in hexadecimal digits": (secret, before) => Buffer.from(before + secret).toString("hex"),
  "as stored bodies are": (secret, before) => Buffer.from(before + secret).toString("latin1"),
};

/** No part of a secret with this number of characters is left. */
const FRAGMENT = 6;
const letters = fc.string({ unit: fc.constantFrom(..."abcXYZ019-_."), minLength: 0, maxLength: 9 });
const secretTexts = fc.oneof(
  fc.string({ unit: fc.constantFrom(..."abcdefXYZ0189+/=-_.~"), minLength: 8, maxLength: 60 }),
  fc.string({ unit: fc.constantFrom(...'a$^*()[]{}|\\?.+"/&=%# é😀'), minLength: 8, maxLength: 20 }),
  fc.string({ unit: "binary", minLength: 8, maxLength: 20 }).filter((text) => text.isWellFormed()),
);

function property(title: string, holds: Parameters<typeof fc.assert>[0]): void {
  it(title, () => fc.assert(holds, { numRuns: 200 }));
}

describe("a hidden secret", () => {
  for (const [form, write] of Object.entries(WRITTEN))
    property(
      `is found ${form}`,
      fc.property(secretTexts, letters, letters, (secret, before, after) => {
        const written = write(secret, before, after);
        const clean = redacting(secret).text(written);
        expect(clean).toContain("[hidden]");
        // If it is the whole text, all of it is hidden.
        const own = write(secret, "", "");
        const left = redacting(secret).text(own).replaceAll("[hidden]", "");
        for (let at = 0; at + FRAGMENT <= secret.length; at++) {
          const fragment = secret.slice(at, at + FRAGMENT);
          if (!write("", "", "").includes(fragment)) expect(left).not.toContain(fragment);
        }
      }),
    );

  property(
    "never stands in a text, whatever other secrets there are",
    fc.property(
      fc.array(secretTexts, { minLength: 1, maxLength: 40 }),
      fc.array(letters, { maxLength: 20 }),
      (secrets, others) => {
        const written = secrets.flatMap((secret, n) => [others[n] ?? "", secret]).join(" ");
        const clean = redacting(...secrets)
          .text(written)
          .replaceAll("[hidden]", "\n");
        for (const secret of secrets) expect(clean).not.toContain(secret);
      },
    ),
  );

  property(
    "changes no text that has none of its forms",
    fc.property(
      fc.array(secretTexts, { minLength: 1, maxLength: 10 }),
      fc.string({ maxLength: 200 }),
      (secrets, text) => {
        const redactor = redacting(...secrets);
        const once = redactor.text(text);
        if (!once.includes("[hidden]")) expect(once).toBe(text);
      },
    ),
  );
});

it("hides all of two secrets that overlap, and of one that starts with another", () => {
  const { text } = redacting("first-half-of-it", "of-it-and-more-yet", "first-half");
  expect(text("a first-half-of-it-and-more-yet b first-half c")).toBe("a [hidden] b [hidden] c");
});

it("hides the beginning of a secret that was cut off", () => {
  const { text } = redacting("s3cr3t-value-of-this-run");
  expect(text("it said: s3cr3t-val… and key=s3cr3t-value-of-th…[+4]")).toBe("it said: [hidden]… and key=[hidden]…[+4]");
  expect(text("a s3cr… b …")).toBe("a s3cr… b …");
});

it("hides every cut word that begins like a secret, so that a caller cannot guess the secret", () => {
  const { text } = redacting("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "https://hooks.example.com/services/T0/B0/XyZ");
  expect(text("whsec_M… whsec_A… whsec_MfKQ9… whsec_…")).toBe("[hidden]… [hidden]… [hidden]… [hidden]…");
  expect(text("whsec_M and whsec_A")).toBe("whsec_M and whsec_A");
  expect(text("whsec_M, and more…")).toBe("whsec_M, and more…");
  expect(text("https://hooks.example.com/a… https://example.com/services…")).toBe(
    "[hidden]… https://example.com/services…",
  );
  expect(JSON.parse(redacting("whsec_MfKQ9r8GKY").jsonLine('{"a":"whsec_M","b":"x…"}'))).toEqual({
    a: "whsec_M",
    b: "x…",
  });
});

it("hides the beginning of a cut secret behind any number of marks", () => {
  const { text } = redacting("s3cr3t-value-of-this-run");
  expect(text(`${"… ".repeat(1000)}s3cr3t-val…`)).toBe(`${"… ".repeat(1000)}[hidden]…`);
});

it("hides the beginning of a cut secret that has blanks or quotes", () => {
  expect(redacting("correct horse battery").text("it is correct horse ba…")).toBe("it is [hidden]…");
  expect(redacting('say"cheese"now').text('it is say"cheese"n…')).toBe("it is [hidden]…");
});

it("searches a hostile text of marks and beginnings in one pass", () => {
  const redactor = redacting("s3cr3t-value-of-this-run", "a b c d e f g h i j");
  for (const piece of ["…", "s3cr3t", "s3cr3t…", 's3cr3t"…', "a b c ", "s3cr3t "])
    expect(redactor.text(piece.repeat(200_000)).length).toBeGreaterThan(0);
});

it("hides each line of a secret of several lines, except the lines that every private key has", () => {
  const { text } = redacting(
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n",
  );
  expect(text("line 1: MIIEvQIBADANBgkq")).toBe("line 1: [hidden]");
  expect(text("line 2: hkiG9w0BAQEFAASC")).toBe("line 2: [hidden]");
  expect(text("-----BEGIN PRIVATE KEY-----")).toBe("-----BEGIN PRIVATE KEY-----");
});

it("does not hide texts shorter than four characters", () => {
  expect(redacting("abc", "").text("abc abc")).toBe("abc abc");
});

it("never forgets a current secret, however many there are, and forgets the oldest earlier ones first", () => {
  const redactor = createRedactor();
  redactor.hide(["the-oldest-secret"]);
  const rotated = (time: number) => Array.from({ length: 1_000 }, (_, n) => `secret-${time}-number-${n}!`);
  redactor.hide(rotated(1));
  redactor.hide(rotated(2));
  const line = (time: number) => redactor.text(`${rotated(time)[0]} ${rotated(time)[999]}`);
  expect(line(2)).toBe("[hidden] [hidden]");
  expect(line(1)).toBe(`${rotated(1)[0]} [hidden]`);
  expect(redactor.text("the-oldest-secret")).toBe("the-oldest-secret");
});

it("returns the same text, without a copy, if it has nothing to hide", () => {
  const body = JSON.stringify({ text: "Build 4711 failed on main\nSee 100 % of it" });
  expect(redacting("a-long-secret-text").text(body)).toBe(body);
});
