import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { root, startProcess } from "#test/harness/process.ts";
import { blocksOf } from "./blocks.ts";

const run = promisify(execFile);
const blocks = blocksOf("docs/openai.md");
const block = (language: string) => blocks.find((one) => one.language === language)?.text ?? "";
const env = { REST_API_KEY: "a-key-of-the-page-of-openai" };

it("the page's configuration answers its calls as it shows", async () => {
  await using gateway = await startProcess({ config: block("json5"), env });
  const { host } = new URL(gateway.url);
  const at = (text: string) => text.replaceAll("127.0.0.1:18789", host);

  const given = await run("bash", ["-c", at(block("sh"))], { env: { PATH: process.env.PATH, ...env } });
  const plain = (text: string) =>
    JSON.parse(text.replaceAll(/01[0-9A-Z]{24}/g, "id").replace(/"created": ?\d+/, '"created": 0')) as object;
  expect(plain(given.stdout)).toEqual(plain(block("json")));

  // Where OpenAI's client is found.
  const file = join(root, "dist", `openai-page-${process.pid}.mjs`);
  writeFileSync(file, at(block("js")));
  try {
    const { stdout } = await run(process.execPath, [file], { env: { ...process.env, ...env } });
    expect(stdout).toBe("What changed since yesterday?");
  } finally {
    rmSync(file);
  }
});

it("the page's Python is Python", async () => {
  const folder = mkdtempSync(join(tmpdir(), "gateway-openai-"));
  try {
    writeFileSync(join(folder, "page.py"), block("python"));
    await run("python3", ["-m", "py_compile", "page.py"], { cwd: folder });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
