import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { skillText } from "#test/harness/skills.ts";
import { browserTests, startPages, TOKENS } from "./browser.ts";

const HOSTILE = "<img src=x onerror=\"document.title='run'\">";
const root = mkdtempSync(join(tmpdir(), "gateway-skills-"));
afterAll(() => rmSync(root, { recursive: true, force: true }));
function write(folder: string, file: string, text: string) {
  mkdirSync(join(root, "skills", folder), { recursive: true });
  writeFileSync(join(root, "skills", folder, file), text);
}

const TEXT = `# How to summarise

1. Read **everything**.
2. See [the guide](https://example.com/guide), not [this](javascript:document.title='run').

${HOSTILE}

<script>document.title = "run"</script>

| a | b |
|---|---|
| 1 | 2 |
`;
write("summarise", "SKILL.md", skillText("summarise", "Summarises.").replace("How to summarise.", TEXT));
write(
  "summarise",
  "params.schema.json",
  JSON.stringify({
    type: "object",
    required: ["topic"],
    properties: { topic: { type: "string" }, length: { type: "integer", maximum: 10 } },
  }),
);
write("empty-text", "SKILL.md", skillText("empty-text", `${HOSTILE} & <b>bold</b>`).replace("How to empty-text.", ""));
write("list", "SKILL.md", skillText("list", "Lists things."));
write("nameless", "SKILL.md", "---\ndescription: It has no name.\n---\nText.\n");
// A folder's name may contain any character but a slash.
write("<img src=x onerror=document.title='run'>", "SKILL.md", "no front matter");

const CONFIG = { skills: { dirs: [join(root, "skills")] } };

browserTests(({ open }) => {
  describe("the skills' page", () => {
    it("MUST list the skills, and the folders without a skill with the reason", async () => {
      await using gateway = await startPages(CONFIG);
      await using page = await open(gateway, { path: "/console/skills", token: TOKENS.admin });
      await page.getByRole("link", { name: "summarise" }).waitFor();
      const invalid = page.getByRole("region", { name: /invalid folders \(not loaded\)/ });
      await invalid.getByText("skills/nameless").waitFor();
      await invalid.getByText("name is missing").waitFor();
      await invalid.getByText("skills/<img src=x onerror=document.title='run'>").waitFor();
      await page.getByText(HOSTILE).waitFor();
      expect(await page.title()).not.toBe("run");
      expect(await page.locator("main img").count()).toBe(0);
      await page.goto(`${gateway.url}/console/skills/nameless`);
      await page.getByText("The skill nameless is invalid.").waitFor();
      await page.goto(`${gateway.url}/console/skills/${encodeURIComponent(HOSTILE.replaceAll("/", ""))}`);
      await page.getByText("No skill is named <img").waitFor();
      expect(await page.title()).not.toBe("run");
    });

    it("MUST show SKILL.md as Markdown that cannot run scripts", async () => {
      await using gateway = await startPages(CONFIG);
      await using page = await open(gateway, { path: "/console/skills/summarise?tab=text" });
      const text = page.getByRole("region", { name: "Instructions" });
      await text.getByRole("heading", { name: "How to summarise" }).waitFor();
      expect(await text.getByRole("link").allTextContents()).toEqual(["the guide"]);
      await text.getByText(HOSTILE).waitFor();
      await text.getByText("<script>").waitFor();
      expect(await text.locator("img, script").count()).toBe(0);
      expect(await text.getByRole("cell").allTextContents()).toEqual(["1", "2"]);
      expect(await page.title()).not.toBe("run");
    });

    it("MUST say that a skill has no text, or that its name is reserved", async () => {
      await using gateway = await startPages(CONFIG);
      await using page = await open(gateway, { path: "/console/skills/empty-text?tab=text" });
      await page.getByText("SKILL.md has no instructions.").waitFor();
      await page.goto(`${gateway.url}/console/skills/list?tab=text`);
      await page.getByText("the name list is reserved: give the skill and its folder another one").first().waitFor();
    });

    it("MUST trigger a skill by its form, and show the reply and its turn", async () => {
      await using gateway = await startPages(CONFIG);
      await using page = await open(gateway, { path: "/console/skills/summarise" });
      const trigger = page.getByRole("button", { name: "Trigger" });
      await trigger.click();
      const topic = page.getByLabel("topic (required)");
      await page.getByRole("alert").filter({ hasText: "Required." }).waitFor();
      await topic.fill("disks");
      await page.getByLabel("length").fill("3");
      await trigger.click();
      const turn = page.getByRole("article", { name: /^Turn turn_/ });
      await turn.getByText('/summarise {"topic":"disks","length":3}').first().waitFor();
      await turn.getByText("completed").first().waitFor();
      expect(await topic.inputValue()).toBe("disks");
      await turn.getByRole("link", { name: "Open the session" }).click();
      await page.getByRole("heading", { name: "Sessions" }).waitFor();
    });

    it("MUST reload the folders, and list a corrected one", async () => {
      await using gateway = await startPages(CONFIG);
      await using page = await open(gateway, { path: "/console/skills" });
      await page.getByText("name is missing").waitFor();
      write("nameless", "SKILL.md", skillText("nameless", "It has a name."));
      await page.getByRole("button", { name: "Reload" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Reload" }).click();
      await page.getByRole("link", { name: "nameless" }).waitFor();
      await page.getByText("name is missing").waitFor({ state: "detached" });
    });
  });
});
