import { expect, it } from "vitest";
import { checkedBy } from "#handlers/mcp/tool.ts";

it("compiles the check of a schema again after a failure", async () => {
  let failures = 1;
  const schema = {
    get type() {
      if (failures-- > 0) throw new Error("EMFILE: too many open files");
      return "object";
    },
  };
  await expect(checkedBy(schema, {})).rejects.toThrow("EMFILE");
  expect(await checkedBy(schema, {})).toEqual({});
});
