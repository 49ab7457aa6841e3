import { describe, expect, it } from "vitest";
import { curlOfDelivery, roundedNumberOf } from "#console/lib/requests.ts";
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
