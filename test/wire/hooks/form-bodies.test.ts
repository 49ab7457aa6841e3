import { describe, expect, it } from "vitest";
import { GatewayError } from "#kit/errors.ts";
import { fieldsOf, isForm, jsonOfForm, withValues } from "#kit/forms.ts";
import { parseForm } from "#wire/call/body.ts";

function read(form: string | Buffer): unknown {
  return parseForm(Buffer.from(form));
}
/** The name and the detail of the refusal. */
function refusal(form: string | Buffer): [string, string | undefined] {
  try {
    throw new Error(`was read as ${JSON.stringify(read(form)).slice(0, 100)}`);
  } catch (error) {
    const { name, detail, cause } = GatewayError.from(error);
    if (name === "internal") throw cause;
    return [name, detail];
  }
}

describe("a form", () => {
  it("is an object of texts, in which the values of a repeated name are a list", () => {
    expect(read("a=1&b=&c&a=2&=x&a=3&")).toEqual({ a: ["1", "2", "3"], b: "", c: "", "": "x" });
  });

  it("has spaces as + and %20, and characters as UTF-8", () => {
    expect(read("a+b=1+2%203%2B4&Gr%C3%BC%C3%9Fe=%F0%9F%91%8B&ü=ß&x=a=b%26c")).toEqual({
      "a b": "1 2 3+4",
      Grüße: "👋",
      ü: "ß",
      x: "a=b&c",
    });
  });

  it("has the same values as URLSearchParams", () => {
    for (const form of ["a=1&b=2", "text=hello+world%21&user=%40ada", "a==&&b=%0A%00", "x=%E2%82%AC+%F0%9D%84%9E"])
      expect(fieldsOf(form)).toEqual([...new URLSearchParams(form)]);
  });

  it("has its values as own fields, whatever their names are", () => {
    const body = read("__proto__=1&constructor=2&toString=3&__proto__=4&hasOwnProperty=5") as object;
    expect(Object.getPrototypeOf(body)).toBe(Object.prototype);
    expect(Object.entries(body)).toEqual([
      ["__proto__", ["1", "4"]],
      ["constructor", "2"],
      ["toString", "3"],
      ["hasOwnProperty", "5"],
    ]);
    expect(({} as Record<string, unknown>)[1]).toBeUndefined();
  });

  it("is the JSON in `payload` if that is its only field", () => {
    const payload = { type: "block_actions", actions: [{ value: "a&b=c +" }] };
    expect(read(`payload=${encodeURIComponent(JSON.stringify(payload))}`)).toEqual(payload);
    expect(read("payload=%5B1%5D")).toEqual([1]);
    expect(read("payload=%7B%7D&more=1")).toEqual({ payload: "{}", more: "1" });
    expect(read("payload=%7B%7D&payload=1")).toEqual({ payload: ["{}", "1"] });
    // With a byte order mark it is another name.
    expect(read("\uFEFFpayload=%7B%7D")).toEqual({ "\uFEFFpayload": "{}" });
  });

  it.each([
    ["a=%", "The form has a percent escape that is incomplete or not UTF-8."],
    ["%zz=1", "The form has a percent escape that is incomplete or not UTF-8."],
    ["a=%FF", "The form has a percent escape that is incomplete or not UTF-8."],
    ["a=%ED%A0%80", "The form has a percent escape that is incomplete or not UTF-8."],
    ["", "The form is empty."],
    ["&&", "The form is empty."],
    ["payload=", "The field `payload` of the form is empty."],
    ["payload=%7B", "The field `payload` of the form is not JSON: it ends too soon, at line 1, column 2."],
    ["payload=no", "The field `payload` of the form is not JSON: look at line 1, column 1."],
    [Buffer.from([0x61, 0x3d, 0xff]), "The body is not UTF-8."],
  ])("is not read if it is %j", (form, detail) => {
    expect(refusal(form)).toEqual(["parse-error", detail]);
  });

  it("is refused if it is JSON, because a signature does not cover the media type", () => {
    for (const json of ['{"text":"a&command=/deploy&b"}', ' \n[1,"&a=b"]', '\uFEFF{"a":1}'])
      expect(refusal(json)).toEqual(["parse-error", "The form is JSON: send it as application/json."]);
    expect(read("%7B%22a%22=1")).toEqual({ '{"a"': "1" });
  });

  it("has at most 10000 fields, and JSON within the limits of a body", () => {
    const fields = (count: number) => Array.from({ length: count }, (_, n) => `f${n}=`).join("&");
    expect(Object.keys(read(fields(10_000)) as object)).toHaveLength(10_000);
    expect(refusal(fields(10_001))).toEqual(["invalid-request", "The form has more than 10000 fields."]);
    const payload = (json: string) => `payload=${encodeURIComponent(json)}`;
    expect(read(payload("[".repeat(64) + "]".repeat(64)))).toBeDefined();
    expect(refusal(payload("[".repeat(65) + "]".repeat(65)))).toEqual([
      "invalid-request",
      "The field `payload` of the form is nested deeper than 64 levels.",
    ]);
    expect(refusal(payload(`[${"1,".repeat(10_000)}1]`))[0]).toBe("invalid-request");
  });

  it("may have names and values of any length", () => {
    const long = "k".repeat(200_000);
    expect(read(`${long}=${long}`)).toEqual({ [long]: long });
  });

  it("is read in linear time", () => {
    const began = process.cpuUsage();
    for (const form of [
      "&".repeat(1_000_000),
      " ".repeat(1_000_000),
      "%41".repeat(300_000),
      `${"a=1&".repeat(9_999)}b`,
    ])
      jsonOfForm(form);
    expect(process.cpuUsage(began).user).toBeLessThan(5_000_000);
  });
});

it("a media type of forms is recognised with the parameters that senders add", () => {
  const media = "application/x-www-form-urlencoded";
  const yes = [media, `${media}; charset=UTF-8`, `${media};charset="utf-8"`, media.toUpperCase(), `${media};`];
  const no = [
    undefined,
    "",
    "application/json",
    `${media}; charset=latin1`,
    `${media}; boundary=x`,
    `text/plain, ${media}`,
    `${media}2`,
  ];
  expect(yes.map(isForm)).toEqual(yes.map(() => true));
  expect(no.map(isForm)).toEqual(no.map(() => false));
});

it("values of a form are replaced in place, and the others stay as they were written", () => {
  const hidden = withValues("a=1&token=x%2By&b=%zz&c&d=%41", (name, value) => (name === "token" ? "[hidden]" : value));
  expect(hidden).toBe("a=1&token=[hidden]&b=%zz&c&d=%41");
  const malformed = ["token=s3cr3t%zz", "token=s3cr3t%", "token=%FF", "%74oken=s%zz", "a=1&token=%E2%82&%ff=%ff"];
  expect(malformed.map((form) => withValues(form, (name, value) => (name === "token" ? "[hidden]" : value)))).toEqual([
    "token=[hidden]",
    "token=[hidden]",
    "token=[hidden]",
    "%74oken=[hidden]",
    "a=1&token=[hidden]&%ff=%ff",
  ]);
  expect(fieldsOf(hidden.replace("&b=%zz", ""))).toContainEqual(["token", "[hidden]"]);
});
