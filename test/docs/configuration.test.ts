import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { loadConfig } from "#config/load.ts";
import { BUILT } from "#gateway/gateway.ts";
import bundled from "#generated/config.schema.json" with { type: "json" };
import { folder } from "#test/config/configs.ts";
import { root } from "#test/harness/process.ts";
import { generatePages } from "../../scripts/generate/generate.ts";
import { blocksOf } from "./blocks.ts";

const PAGE = "docs/configuration.md";
const page = readFileSync(join(root, PAGE), "utf8");
const env = {
  REST_API_KEY: "rest-key-of-the-configuration",
  RPC_TOKEN: "rpc-token-of-the-configuration",
  WEBHOOK_TOKEN: "webhook-token-of-the-configuration",
};

it("the page's example is a configuration that is accepted without a warning", async () => {
  const file = join(folder(), "gateway.json5");
  writeFileSync(file, blocksOf(PAGE).find(({ name }) => name === "gateway.json5")?.text ?? "");
  const { config, warnings } = await loadConfig({ file, env, built: BUILT });
  expect(warnings).toEqual([]);
  expect(config.gateway.defaultAgent).toBe("main");
  rmSync(file);
});

it("has a row or a section for each key", () => {
  const keys = new Set<string>();
  const visit = (node: unknown): void => {
    if (typeof node !== "object" || node === null) return;
    const { properties } = node as { properties?: object };
    for (const key of Object.keys(properties ?? {})) keys.add(key);
    for (const [key, inner] of Object.entries(node)) if (key !== "examples" && key !== "default") visit(inner);
  };
  visit(bundled);
  keys.delete("$schema");
  expect(keys.size).toBeGreaterThan(100);
  const rows = [...page.matchAll(/^(?:\| |## )`([^`]+)`/gm)].flatMap(([, key = ""]) => key.split(/[.[\]]+/));
  expect([...keys].filter((key) => !rows.includes(key))).toEqual([]);
});

it("names the keys that need a restart", () => {
  const [restart = ""] = page.match(/^## `gateway`[\s\S]*?(?=^## )/m) ?? [];
  const marked = [...restart.matchAll(/^\| `(\w+)` \|(?:[^|]*\|){2} yes \|/gm)].map(([, key]) => key);
  expect(marked).toEqual(["host", "port", "listeners"]);
});

it("describes the default agent and the heartbeat's 30 minutes", () => {
  expect(page).toContain("With two agents or more, `gateway.defaultAgent` is required");
  expect(page).toContain("every 30 minutes");
});

it("matches the schema", () => {
  expect(generatePages(join(root, "specs"), join(root, "docs"))["configuration.md"]).toBe(page);
});
