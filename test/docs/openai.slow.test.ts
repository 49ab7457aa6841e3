import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { root, startProcess } from "#test/harness/process.ts";
import { at, blocksOf, paste } from "./blocks.ts";
import { configOfPage } from "./recipes.ts";

const run = promisify(execFile);
const blocks = blocksOf("docs/openai.md");
function block(language: string) {
  return blocks.find((one) => one.language === language)?.text ?? "";
}
const env = { REST_API_KEY: "a-key-of-the-page-of-openai" };

it("the page's configuration gives the answers that it shows, and links to existing pages", async () => {
  const config = await configOfPage("docs/openai.md", ["gateway.json5", "pages"]);
  await using gateway = await startProcess({ config, env });
  const given = await paste(at(gateway.url, block("sh")), env);
  const plain = (text: string) =>
    JSON.parse(text.replaceAll(/01[0-9A-Z]{24}/g, "id").replace(/"created": ?\d+/, '"created": 0')) as object;
  expect(plain(given)).toEqual(plain(block("json")));

  const asking = { origin: "https://chat.example.com", "access-control-request-method": "POST" };
  const asked = await fetch(`${gateway.url}/v1/chat/completions`, { method: "OPTIONS", headers: asking });
  expect([asked.status, asked.headers.get("access-control-allow-origin")]).toEqual([204, asking.origin]);

  // The folder of OpenAI's client.
  const file = join(root, "dist", `openai-page-${process.pid}.mjs`);
  writeFileSync(file, at(gateway.url, block("js")));
  try {
    const { stdout } = await run(process.execPath, [file], { env: { ...process.env, ...env } });
    expect(stdout).toBe("What changed since yesterday?");
  } finally {
    rmSync(file);
  }
});

it("the page's Python is valid", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gateway-openai-"));
  try {
    writeFileSync(join(folder, "page.py"), block("python"));
    await run("python3", ["-m", "py_compile", "page.py"], { cwd: folder });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
