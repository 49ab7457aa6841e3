import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { filesBelow, type Import, importsOf, root } from "#test/harness/imports.ts";

function isOurs({ to }: Import): boolean {
  return /^(src|generated|specs|test|scripts)\//.test(to);
}

const EVENTS = "src/observe/events.ts";
const STORE = "src/store/store.ts";
const BACKEND = "src/backends/backend.ts";
const CHANNEL = "src/channels/channel.ts";
const TOOL = "src/tools/tool.ts";
/** Small things without state of the gateway's own: errors, clocks, ids, signing, programs of this machine. Every room may use them. */
const KIT = "src/kit/";

/** The imports that each room may have: whole rooms, single files, and files of which it may take types alone. */
const ROOMS: Record<string, { may: string[]; types?: string[] }> = {
  "src/kit/": { may: [KIT, "generated/"] },
  "src/store/": { may: ["src/store/", "generated/", KIT, EVENTS] },
  "src/outbound/": { may: ["src/outbound/", KIT] },
  "src/backends/": { may: ["src/backends/", "src/outbound/", "generated/", TOOL, KIT, EVENTS] },
  "src/tools/": { may: ["src/tools/", "src/outbound/", "generated/", KIT, EVENTS] },
  "src/channels/": { may: ["src/channels/", "src/outbound/", "generated/", KIT, EVENTS] },
  "src/core/": { may: ["src/core/", "generated/", TOOL, KIT, EVENTS], types: [STORE, BACKEND, CHANNEL] },
  "src/handlers/": { may: ["src/handlers/", "src/core/", "generated/", KIT, EVENTS], types: [STORE] },
  "src/wire/": {
    may: ["src/wire/", "generated/", "src/observe/", KIT],
    types: ["src/core/", STORE],
  },
  "src/config/": {
    may: ["src/config/", "generated/", KIT, EVENTS],
  },
  "src/observe/": { may: ["src/observe/", "generated/", KIT] },
  "src/console/": { may: ["src/console/", "generated/clients/", "src/kit/visible.ts"] },
  "src/gateway/": {
    may: [
      "src/gateway/",
      "src/version.ts",
      "src/backends/",
      "src/channels/",
      "src/config/",
      "src/core/",
      "src/handlers/",
      "src/kit/",
      "src/observe/",
      "src/outbound/",
      "src/store/",
      "src/tools/",
      "src/wire/",
      "generated/",
    ],
  },
  "src/cli/": {
    // The words that the console has for requests and times are the command line's too.
    may: [
      "src/cli/",
      "src/gateway/",
      "src/version.ts",
      "src/console/lib/",
      "generated/clients/",
      "generated/methods.ts",
      "generated/openapi.json",
      "generated/openrpc.json",
      // The scope of each operation, for the weakest key that may call it.
      "generated/routes.ts",
      "src/config/",
      "src/observe/",
      KIT,
    ],
  },
};

function allows(rules: string[], path: string): boolean {
  return rules.some((rule) => path === rule || (rule.endsWith("/") && path.startsWith(rule)));
}

/** The files of every circle that a walk along the imports finds. */
function circlesIn(imports: ReadonlyMap<string, readonly string[]>): string[] {
  const seen = new Set<string>();
  const circleFrom = (file: string, path: readonly string[]): string[] => {
    if (path.includes(file)) return [...path.slice(path.indexOf(file)), file];
    if (seen.has(file)) return [];
    seen.add(file);
    return (imports.get(file) ?? []).flatMap((to) => circleFrom(to, [...path, file]));
  };
  return [...imports.keys()].flatMap((file) => circleFrom(file, []));
}

/** The relative imports of Python modules, those for type checkers only included. */
function pythonImportsBelow(folder: string): Map<string, string[]> {
  const names = readdirSync(join(root, folder), { recursive: true, encoding: "utf8" });
  const files = new Set(names.filter((name) => name.endsWith(".py")));
  const fileOf = (module: string) => [`${module}.py`, join(module, "__init__.py")].find((file) => files.has(file));
  const importsIn = (file: string): string[] => {
    const text = readFileSync(join(root, folder, file), "utf8");
    return [...text.matchAll(/^ *from (\.+)(\S*) import (\([^)]*\)|.*)/gm)].flatMap(
      ([, dots = "", path = "", names = ""]) => {
        const from = join(dirname(file), "../".repeat(dots.length - 1), path.replaceAll(".", "/"));
        const submodules = (names.match(/\w+/g) ?? []).map((name) => fileOf(join(from, name)));
        return [...submodules, path === "" ? undefined : fileOf(from)].filter((found) => found !== undefined);
      },
    );
  };
  return new Map([...files].map((file) => [file, importsIn(file)]));
}

describe("the house", () => {
  const sources = filesBelow("src");

  it.each(Object.entries(ROOMS))("%s imports only what its row allows", (room, { may, types = [] }) => {
    const files = sources.filter((file) => file.startsWith(room));
    expect(files.length).toBeGreaterThan(0);
    const wrong = files
      .flatMap(importsOf)
      .filter(isOurs)
      .filter(({ to, typeOnly }) => !allows(may, to) && !(typeOnly && allows(types, to)));
    expect(wrong).toEqual([]);
  });

  it("an engine or a backend never imports another one", () => {
    const engineOf = (path: string) => /^src\/store\/(?!rules\/|local\/)(\w+)\//.exec(path)?.[1];
    const crossed = sources.flatMap(importsOf).filter(({ from, to }) => {
      return engineOf(from) !== undefined && engineOf(to) !== undefined && engineOf(from) !== engineOf(to);
    });
    expect(crossed).toEqual([]);
  });

  it("the rules of the store know no engine", () => {
    const rules = sources.filter((file) => file.startsWith("src/store/rules/")).flatMap(importsOf);
    expect(rules.filter(({ to }) => /^src\/store\/(?!rules\/)\w+\//.test(to) || to.startsWith("node:"))).toEqual([]);
  });

  it("no file imports one that imports it, directly or by others", () => {
    expect(circlesIn(new Map(sources.map((file) => [file, importsOf(file).map(({ to }) => to)])))).toEqual([]);
  });

  it("the generated clients have no import circle", () => {
    const typescript = filesBelow("generated/clients/typescript/src");
    expect(circlesIn(new Map(typescript.map((file) => [file, importsOf(file).map(({ to }) => to)])))).toEqual([]);
    expect(circlesIn(pythonImportsBelow("generated/clients/python/src"))).toEqual([]);
  });

  it("every folder of src has a row here", () => {
    const folders = readdirSync(join(root, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.map(({ name }) => `src/${name}/`).filter((folder) => !(folder in ROOMS))).toEqual([]);
  });

  it("generated code imports nothing of ours, and no source is imported from a test", () => {
    const wrong = [
      ...filesBelow("generated")
        .flatMap(importsOf)
        .filter(({ to }) => to.startsWith("src/") || to.startsWith("scripts/")),
      ...sources.flatMap(importsOf).filter(({ to }) => /^(test|scripts)\//.test(to)),
    ];
    expect(wrong).toEqual([]);
  });

  it("no import climbs more than one folder", () => {
    const climbing = sources.filter((file) => /from "\.\.\/\.\.\//.test(readFileSync(join(root, file), "utf8")));
    expect(climbing).toEqual([]);
  });

  it("functions are declared, so that outlines, stack traces and tools see their names", () => {
    const arrow = /^(?:export )?const (\w+) = (?:async )?(?:<.*>)?\((?:[^()]|\([^()]*\))*\)(?:: [^=]+)? =>/gm;
    const files = ["src", "scripts", "test"].flatMap(filesBelow).filter((file) => /\.tsx?$/.test(file));
    const found = files.flatMap((file) =>
      [...readFileSync(join(root, file), "utf8").matchAll(arrow)].map(([, name]) => `${file}: ${name}`),
    );
    expect(found).toEqual([]);
  });

  it("core and kit read no clock and set no timer of their own", () => {
    const wrong = sources.filter((file) => {
      const isHeld = /^src\/(core|kit)\//.test(file) && file !== "src/kit/clock.ts";
      return isHeld && /\bDate\.now\(|\bsetTimeout\(|\bsetInterval\(/.test(readFileSync(join(root, file), "utf8"));
    });
    expect(wrong).toEqual([]);
  });

  it("no file is over 400 lines, and the median is under 100", () => {
    const sizes = sources
      .map((file) => ({ file, lines: readFileSync(join(root, file), "utf8").split("\n").length }))
      .sort((a, b) => b.lines - a.lines);
    console.log(
      `Largest files:\n${sizes
        .slice(0, 5)
        .map(({ file, lines }) => `  ${lines}  ${file}`)
        .join("\n")}`,
    );
    expect(sizes[0]?.lines).toBeLessThanOrEqual(400);
    expect(sizes[Math.floor(sizes.length / 2)]?.lines).toBeLessThan(100);
  });

  it("the README leads to every page of docs/", () => {
    const readme = readFileSync(join(root, "README.md"), "utf8");
    const pages = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
    expect(pages.filter((name) => !readme.includes(`](docs/${name})`))).toEqual([]);
  });

  it("the top level holds what it should and no more", () => {
    const allowed = [
      "package.json",
      "package-lock.json",
      "tsconfig.json",
      "specs",
      "generated",
      "src",
      "test",
      "scripts",
      "docs",
      "README.md",
      "LICENSE",
      "CHANGELOG.md",
      "CONTRIBUTING.md",
      "SECURITY.md",
      "biome.json",
      "redocly.yaml",
      "vitest.config.ts",
      "dist",
      "node_modules",
      "bench-results",
    ];
    const found = readdirSync(root).filter((name) => !name.startsWith("."));
    expect(found.filter((name) => !allowed.includes(name))).toEqual([]);
  });
});
