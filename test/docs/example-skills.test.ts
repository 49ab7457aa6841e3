import { resolve } from "node:path";
import { expect, it } from "vitest";
import { checkParams, createSkills } from "#core/skills/skills.ts";

it("the skills of the examples are valid, with their params and files", async () => {
  const skills = createSkills();
  const { invalid, take } = await skills.read([resolve("docs/examples/skills")]);
  take();
  expect(invalid).toEqual([]);
  expect(skills.ids()).toEqual(["release-notes", "triage-alert"]);
  for (const skill of skills.list()) expect(skill.body.length).toBeGreaterThan(500);
  const [notes, alert] = skills.list();
  if (!notes || !alert) throw new Error("the examples are not there");
  checkParams(alert, { alert: { status: "firing" } });
  expect(() => checkParams(alert, {})).toThrow("alert");
  checkParams(notes, { version: "1.2.0", changes: ["Add a page"] });
});
