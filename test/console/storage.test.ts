import { expect, it } from "vitest";
import { browserStorage, tabStorage } from "#console/lib/storage.ts";

it("stores values in memory if there is no browser storage", () => {
  expect(browserStorage.getItem("theme")).toBeNull();
  browserStorage.setItem("theme", "dark");
  expect([browserStorage.getItem("theme"), tabStorage.getItem("theme")]).toEqual(["dark", null]);
  browserStorage.removeItem("theme");
  expect(browserStorage.getItem("theme")).toBeNull();
});
