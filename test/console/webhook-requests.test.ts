import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import {
  curlOfHook,
  headersOfLines,
  linesOfHeaders,
  payloadOf,
  withPair,
  withPlaces,
} from "#console/lib/webhook-requests.ts";
import type { SignatureScheme } from "#generated/clients/typescript/src/webhooks.ts";
import { schemes, signedWith, timeFault } from "#wire/hooks/signatures.ts";

describe("the input of the tester", () => {
  it("is one header per line, with names in lower case", () => {
    const read = headersOfLines("X-GitHub-Event: push\n\n x-a:b: c ");
    expect(read).toEqual({ headers: { "x-github-event": "push", "x-a": "b: c" } });
    expect("headers" in read && linesOfHeaders(read.headers)).toBe("x-github-event: push\nx-a: b: c");
  });

  it("is refused with an explanation if a line is not a header", () => {
    expect(headersOfLines("push")).toEqual({ fault: expect.stringContaining("“push” is not a header") });
  });

  it("is a JSON object or a list; an empty payload is an empty object", () => {
    expect([payloadOf(""), payloadOf("[1]")]).toEqual([{ body: {} }, { body: [1] }]);
    expect(payloadOf("7")).toEqual({ fault: "The payload must be a JSON object or array." });
    expect(payloadOf("{")).toHaveProperty("fault");
  });
});

describe("a pair that is added to a request", () => {
  const put = (path: string) => withPair({ headers: {}, body: {} }, path, "x");
  it("creates the place that it names", () => {
    expect(put("body.a.b").body).toEqual({ a: { b: "x" } });
    expect(put("body.commits.1.id").body).toEqual({ commits: [null, { id: "x" }] });
    expect(put("headers.X-GitHub-Event").headers).toEqual({ "x-github-event": "x" });
  });

  it("preserves existing values, and changes no other object", () => {
    const before = { headers: {}, body: { a: { c: 1 }, list: [1] } };
    expect(withPair(before, "body.a.b", "x").body).toEqual({ a: { c: 1, b: "x" }, list: [1] });
    expect(before.body).toEqual({ a: { c: 1 }, list: [1] });
  });

  it("changes nothing if the path is not valid", () => {
    expect([put("message").body, put("body.__proto__.x").body]).toEqual([{}, {}]);
  });
});

describe("the placeholders of a template", () => {
  it("get their names as values if the request has none", () => {
    const request = { headers: {}, body: { kind: "deploy", by: { id: 7 } } };
    const filled = withPlaces(
      request,
      "{body.kind} of {body.service} by {body.by.name} ({body.by.id}) {headers.x-env} {{none}}",
    );
    expect(filled.body).toEqual({ kind: "deploy", service: "service", by: { id: 7, name: "name" } });
    expect(filled.headers).toEqual({ "x-env": "x-env" });
  });

  it("get a value at their first place if none of their places has one", () => {
    const template = "{body.thread_ts|body.ts} {headers.x-a|body.b}";
    expect(withPlaces({ headers: {}, body: {} }, template)).toEqual({
      headers: { "x-a": "x-a" },
      body: { thread_ts: "thread_ts" },
    });
    const request = { headers: {}, body: { ts: "1", b: "2" } };
    expect(withPlaces(request, template)).toEqual(request);
  });
});

describe("the command that sends a webhook", () => {
  it("has a variable for the shared token", () => {
    const command = curlOfHook({ origin: "http://gw", path: "/hooks/deploy", verify: null, body: "{}" });
    expect(command).toContain('-H "authorization: Bearer $WEBHOOK_TOKEN"');
  });

  it.each([
    ["github", "GITHUB_WEBHOOK_SECRET", "It's a secret"],
    ["stripe", "STRIPE_WEBHOOK_SECRET", "whsec_stripe"],
    ["slack", "SLACK_SIGNING_SECRET", "8f742231"],
    ["linear", "LINEAR_WEBHOOK_SECRET", "lin_wh_XkV"],
    ["twilio", "TWILIO_AUTH_TOKEN", "12345"],
    ["standard-webhooks", "WEBHOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
  ] as [SignatureScheme, string, string][])("signs like %s, in a shell", (type, variable, secret) => {
    const body = `{"text":"it's $HOME"}`;
    const url = "https://example.com/hooks/x?a=1";
    const command = curlOfHook({ origin: "http://gw", path: "/hooks/x", verify: type, verifyUrl: url, body });
    // In the place of curl, a function that writes its arguments.
    const script = command.replace('curl "$@"', `curl() { printf "%s\\n" "$@"; }\n$&`);
    const said = execFileSync("sh", ["-c", script], { env: { ...process.env, [variable]: secret }, encoding: "utf8" });
    const lines = said.trimEnd().split("\n");
    const headers = Object.fromEntries(
      lines.flatMap((line, n) =>
        lines[n - 1] === "-H" ? [line.split(/: (.*)/s).slice(0, 2) as [string, string]] : [],
      ),
    );
    const scheme = schemes[type];
    const claim = scheme.claimOf(headers);
    const sent = Buffer.from(lines.at(-1) ?? "");
    const signing = { scheme, keys: scheme.keysOf(secret), url };
    expect(JSON.parse(String(sent))).toMatchObject(JSON.parse(body));
    expect(timeFault(scheme, JSON.parse(String(sent)), Date.now())).toBeUndefined();
    expect(claim && signedWith(signing, claim, sent, headers)).toBe(0);
  });
});
