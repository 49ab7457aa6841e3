import { expect, test } from "vitest";
import { readOptions } from "./options.ts";
import { measureSoak } from "./p16.ts";

test("ten minutes are run only for who names them", async () => {
  const say = () => {
    throw new Error("it began");
  };
  const options = readOptions([], say);
  if (options === "help") throw new Error("no help was asked for");
  const [figure] = await measureSoak(options);
  expect(figure).toMatchObject({ gate: "P16", note: expect.stringContaining("not measured: ") });
  expect(figure).not.toHaveProperty("held");
});
