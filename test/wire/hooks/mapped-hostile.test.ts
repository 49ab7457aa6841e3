import { describe, expect, test } from "vitest";
import { shareGateway } from "#test/harness/gateway.ts";
import { ended, withMappings } from "./mapped-payloads.ts";

describe("F13: a hostile payload", async () => {
  const gateway = await shareGateway({
    config: withMappings({
      all: {
        match: {},
        message:
          "<{body.a}|{body.a.b}|{body.constructor}|{body.toString}|{body.length}|{body.0}|{headers.x-a}|{headers.constructor}>",
      },
      proto: { match: { "body.isAdmin": "true" }, message: "polluted" },
    }),
  });

  test.each([
    ['{"__proto__":{"isAdmin":true,"a":"x"}}', "<|||||||>"],
    ['{"a":{"__proto__":{"b":"x"}}}', '<{"__proto__":{"b":"x"}}|||||||>'],
    ['{"constructor":{"prototype":{"isAdmin":true}}}', '<||{"prototype":{"isAdmin":true}}|||||>'],
    ['{"a":"{body.a} {{ }} {headers.x-a}"}', "<{body.a} {{ }} {headers.x-a}|||||||>"],
    ['{"a":1e400}', "<|||||||>"],
    ['{"a":"\\ud800"}', null],
    ['{"a":"\\u0000"}', "<\u0000|||||||>"],
    ['["x","y"]', "<|||||x||>"],
    ['{"a":1,"a":2}', "<2|||||||>"],
    [`{"a":${"[".repeat(60)}${"]".repeat(60)}}`, `<${"[".repeat(60)}${"]".repeat(60)}|||||||>`],
  ])("%s is filled in as what it is", async (body, text) => {
    const { hooks } = gateway;
    const reply = await hooks.named("all", body);
    expect(reply.status).toBe(200);
    const said = await ended(gateway, reply);
    if (text !== null) expect(said).toBe(text);
    expect((await hooks.named("proto", body)).json.message).toBe("no mapping matched");
    expect(Object.prototype).not.toHaveProperty("isAdmin");
  });

  test.each(['"text"', "5", "null", "true", "", "{", "[1,]", `${"[".repeat(65)}${"]".repeat(65)}`])(
    "%s is refused before a mapping sees it",
    async (body) => {
      const { hooks } = gateway;
      expect((await hooks.named("all", body)).status).toBe(400);
    },
  );
});
