import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { withoutKeys } from "#kit/clean-words.ts";
import { hideSecretFields, isSecretName } from "#kit/secret-fields.ts";

const SECRET_NAMES =
  `SecretAccessKey secret_key secretKey SECRET_KEY access_key accessKey access-key SecretString credentials pwd userPwd
  SessionToken session_token token tokens refresh_token idToken x-gateway-token Authorization proxy-authorization client_secret clientSecret
  api_key apiKey APIKey X-Api-Key apikey private_key privateKey password passwd DB_PASSWORD passphrase cookie Set-Cookie signature
  x-hub-signature aws_secret_access_key signing_key encryptionKey account_key secret jwt`.split(/\s+/);
const OTHER_NAMES =
  `id name key keys public_key primaryKey keyboard monkey author authority secretary tokenizer tokenization max_tokens_details
  token_type tokenCount token_count tokens_used token_usage token_limit completion_tokens_details token_expires_in tokenExpiresAt
  password_policy passwordLastUsed password_changed_at SecretName secret_name secretArn signature_version SignatureAlgorithm cookie_policy
  authorization_endpoint token_endpoint token_url`.split(/\s+/);

describe("the name of a field", () => {
  it.each(SECRET_NAMES)("marks its value as a secret: %s", (name) => {
    expect(isSecretName(name)).toBe(true);
    for (const value of ['"s3cr3t"', "12345678", '["s3cr3t"]', '{"a":"s3cr3t"}']) {
      if (/tokens/i.test(name) && value === "12345678") continue;
      expect(hideSecretFields(`{"${name}":${value},"b":1}`)).toBe(`{"${name}":"[hidden]","b":1}`);
    }
    expect(withoutKeys(`export ${name.replaceAll("-", "_")}=s3cr3t; echo`)).not.toContain("s3cr3t");
  });

  it.each(OTHER_NAMES)("does not mark its value as a secret: %s", (name) => {
    expect(isSecretName(name)).toBe(false);
    const text = `{"${name}":"shown","b":{"${name}":["shown"]}}`;
    expect(hideSecretFields(text)).toBe(text);
  });

  it.each(["max_tokens", "total_tokens", "maxOutputTokens", "tokens", "prompt_tokens"])(
    "is for counted tokens: %s",
    (name) => {
      for (const number of ["100", "0", "-1", "1.5e3"]) {
        for (const text of [
          `{"${name}": ${number}}`,
          `{"${name}":${number},"b":1}`,
          `{"a":"{\\"${name}\\":${number}}"}`,
          `{"${name}":${number}`,
        ])
          expect(hideSecretFields(text)).toBe(text);
        expect(withoutKeys(`?${name}=${number}`)).toBe(`?${name}=${number}`);
      }
      expect(hideSecretFields(`{"${name}":"100"}`)).toBe(`{"${name}":"[hidden]"}`);
      expect(hideSecretFields(`{"${name}":100x}`)).toContain("[hidden]");
    },
  );

  it("does not hide booleans and null", () => {
    const text = '{"password":null,"secret":true,"token":false}';
    expect(hideSecretFields(text)).toBe(text);
  });
});

const LONG = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z";
const KEYS: Record<string, string> = {
  "an AWS key": "AKIAIOSFODNN7EXAMPLE",
  "a temporary AWS key": "ASIAIOSFODNN7EXAMPLE",
  "a pair of AWS": "AKIAIOSFODNN7EXAMPLE,wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
  "a pair of AWS in JSON": 'ASIAIOSFODNN7EXAMPLE","wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY',
  "a personal token of GitHub": `github_pat_11ABC_${LONG}`,
  "a token of a GitHub app": `ghs_${LONG}`,
  "a token of GitLab": `glpat-${LONG.slice(0, 20)}`,
  "a key of Google": `AIzaSy${LONG}`,
  "a secret of webhooks": `whsec_${LONG}+/==`,
  "a bot of Slack": `xoxb-123456789012-${LONG}`,
  "a session of Slack": `xoxe-1-${LONG}`,
  "a key of Stripe": `sk_live_${LONG}`,
  "a restricted key of Stripe": `rk_live_${LONG}`,
  "a key of OpenAI": `sk-proj-${LONG}`,
  "a JSON web token": `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.${LONG}`,
  "a bearer token": `Bearer ${LONG}`,
  "basic credentials": "Basic YWRhOnNlc2FtZTE=",
  "a private key": `-----BEGIN RSA PRIVATE KEY-----\n${LONG}\n-----END RSA PRIVATE KEY-----`,
};

describe("a text", () => {
  it.each(Object.entries(KEYS))("contains no key in a provider's format: %s", (_, key) => {
    for (const [before, after] of [
      ["", ""],
      ["it is ", "!"],
      ['{"value":"', '"}'],
      ["(", ")"],
      ["key:", "\n"],
    ])
      expect(withoutKeys(before + key + after)).toBe(`${before}[hidden]${after}`);
  });

  it.each([
    ["postgres://ada:sesame@db/x", "postgres://ada:[hidden]@db/x"],
    ["GET /x?access_token=s3same&page=2", "GET /x?access_token=[hidden]&page=2"],
    ["PASSWORD='open sesame'", "PASSWORD='[hidden] sesame'"],
    ['{"env":"API_KEY=\\"s3same\\""}', '{"env":"API_KEY=\\"[hidden]\\""}'],
    ["http://h:8080/a@b", "http://h:8080/a@b"],
    ["Basic understanding of the ask-me-anything task-force", "Basic understanding of the ask-me-anything task-force"],
    ["a+b=c, total_tokens=12", "a+b=c, total_tokens=12"],
    ["eyJhbGciOiJIUzI1NiJ9", "eyJhbGciOiJIUzI1NiJ9"],
  ])("has no values of secret names elsewhere: %s", (text, clean) => {
    expect(withoutKeys(text)).toBe(clean);
  });

  it("does not change if nothing in it is a secret", () => {
    const words = fc.constantFrom(
      "name",
      "key",
      "max_tokens",
      "tokens",
      ":",
      " ",
      '"',
      "{",
      "}",
      ",",
      "100",
      "=",
      "a",
      "\\",
    );
    const texts = fc.array(words, { maxLength: 40 }).map((some) => some.join(""));
    fc.assert(
      fc.property(texts, (text) => {
        fc.pre(!hideSecretFields(text).includes("[hidden]") && !withoutKeys(text).includes("[hidden]"));
        expect(withoutKeys(hideSecretFields(text))).toBe(text);
      }),
    );
  });

  it("is searched in one pass, however hostile it is", () => {
    const pieces = [
      "eyJ",
      "-eyJ-",
      "AKIA",
      "sk-",
      "Basic ",
      "Bearer ",
      "-----BEGIN PRIVATE KEY-----",
      "//a:",
      "//",
      "a=",
      "a=\\",
      "token",
      '"token',
      '"token":{',
      "secret_",
      "access_",
    ];
    for (const piece of pieces) {
      const text = piece.repeat(Math.ceil(1_000_000 / piece.length));
      expect(withoutKeys(hideSecretFields(text)).length).toBeGreaterThan(0);
      expect(isSecretName(text)).toBeTypeOf("boolean");
    }
  });
});
