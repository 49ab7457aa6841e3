import { expect, it } from "vitest";
import { browserStorage, tabStorage } from "#console/lib/storage.ts";

it("remembers in memory where the browser blocks storage, as Node has none", () => {
  expect(browserStorage.getItem("theme")).toBeNull();
  browserStorage.setItem("theme", "dark");
  expect([browserStorage.getItem("theme"), tabStorage.getItem("theme")]).toEqual(["dark", null]);
  browserStorage.removeItem("theme");
  expect(browserStorage.getItem("theme")).toBeNull();
});
