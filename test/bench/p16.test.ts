import { expect, test } from "vitest";
import { readOptions } from "./options.ts";
import { measureSoak, measureSoakOnSqlite } from "./p16.ts";

test.each([
  ["in memory", measureSoak],
  ["on SQLite", measureSoakOnSqlite],
])("ten minutes %s are run only for who names them", async (_, bench) => {
  const say = () => {
    throw new Error("it began");
  };
  const options = readOptions([], say);
  if (options === "help") throw new Error("no help was asked for");
  const [figure] = await bench(options);
  expect(figure).toMatchObject({ gate: "P16", note: expect.stringContaining("not measured: ") });
  expect(figure).not.toHaveProperty("held");
});
