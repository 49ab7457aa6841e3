import { describe, expect, it } from "vitest";
import { curlNote, curlOfDelivery, prettyBody, roundedNumberOf } from "#console/lib/requests.ts";
import type { Delivery } from "#generated/clients/typescript/src/rest.ts";

it("the command of a schedule's run runs the schedule again", () => {
  const run = {
    surface: "schedule",
    operation: "schedules.fire",
    path: "schedules/brief",
    caller: "brief",
  } as Delivery;
  const command = curlOfDelivery(run, "http://127.0.0.1:18789");
  expect(command).toContain("http://127.0.0.1:18789/api/v1/schedules/brief/run");
  expect(command).toContain("-X 'POST'");
});

describe("the stored body of a form", () => {
  const formOf = (body: string) =>
    ({
      ...{ body, body_encoding: "utf-8", bytes: body.length, timeline: [] },
      headers: { "content-type": "application/x-www-form-urlencoded" },
    }) as unknown as Delivery;
  const fieldsOf = (body: string): unknown => JSON.parse(prettyBody(formOf(body)) ?? "null");

  it("is shown as its fields, or as the JSON of its only field `payload`", () => {
    expect(fieldsOf("text=hello+world&to=a&to=b&command=%2Fdeploy&empty=")).toEqual({
      ...{ text: "hello world", to: ["a", "b"] },
      ...{ command: "/deploy", empty: "" },
    });
    expect(fieldsOf(`payload=${encodeURIComponent('{"type":"block_actions"}')}`)).toEqual({ type: "block_actions" });
    expect(prettyBody(formOf("text=%E0%A4%A"))).toBeUndefined();
  });

  it("needs its hidden fields in a command", () => {
    expect(curlNote(formOf("token=[hidden]&text=hi"))).toBe("Replace [hidden] with the secrets.");
    expect(curlNote(formOf("text=a%5Bhidden%5D"))).toBeUndefined();
  });
});

describe("an edited body", () => {
  it.each([
    ["an integer past 2^53", '{"id":12345678901234567890}', "12345678901234567890"],
    ["a negative one in a list", "[1,-9007199254740993]", "-9007199254740993"],
  ])("will be rounded if it has %s", (_, json, number) => {
    expect(roundedNumberOf(json)).toBe(number);
  });

  it.each([
    ["safe integers", '{"id":9007199254740991,"n":-1}'],
    ["fractions and exponents", "[1.5,1e21,2.00]"],
    ["digits in texts and names", '{"1234567890123456789\\"01":"12345678901234567890"}'],
  ])("is unchanged if it has %s", (_, json) => {
    expect(roundedNumberOf(json)).toBeUndefined();
  });
});
