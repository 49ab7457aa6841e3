import type { ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { endSoon } from "#wire/http/outbox.ts";

const answerTo = (sent: string[], name: string, fault?: Error): ServerResponse =>
  ({
    end: (body: string) => {
      if (fault) throw fault;
      sent.push(`${name}: ${body}`);
    },
    destroy: () => sent.push(`${name} is cut`),
  }) as unknown as ServerResponse;

test("sends the answers of a turn of the loop together, in their order", async () => {
  const sent: string[] = [];
  for (const name of ["a", "b", "c"]) endSoon(answerTo(sent, name), "body");
  expect(sent).toEqual([]);
  await new Promise(setImmediate);
  expect(sent).toEqual(["a: body", "b: body", "c: body"]);
});

test("holds no more than 32", () => {
  const sent: string[] = [];
  for (let n = 0; n < 32; n++) endSoon(answerTo(sent, `${n}`), "body");
  expect(sent).toHaveLength(32);
});

test("cuts one off that cannot be ended, and sends the others", async () => {
  const sent: string[] = [];
  endSoon(answerTo(sent, "a", new Error("gone")), "body");
  endSoon(answerTo(sent, "b"), "body");
  await new Promise(setImmediate);
  expect(sent).toEqual(["a is cut", "b: body"]);
});
