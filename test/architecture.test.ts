import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { filesBelow, type Import, importsOf, root } from "#test/harness/imports.ts";

function isOurs({ to }: Import): boolean {
  return /^(src|generated|specs|test|scripts)\//.test(to);
}

const PAGE = "docs/architecture.md";
const EVENTS = "src/observe/events.ts";
const STORE = "src/store/store.ts";
const BACKEND = "src/backends/backend.ts";
const CHANNEL = "src/channels/channel.ts";
const TOOL = "src/tools/tool.ts";
const KIT = "src/kit/";
const GENERATED = "generated/";

/** A room, with the folders and files that it may import besides itself, and those from which it may import only types. */
type Room = { purpose: string; may: readonly string[]; types?: readonly string[]; except?: readonly string[] };

/** The rooms, by distance from the wire. docs/architecture.md shows this table: ROOMS=renew writes it there. */
const ROOMS: Record<string, Room> = {
  "generated/": { purpose: "the result of `npm run generate`; never edited", may: [] },
  "src/wire/": {
    purpose: "turns bytes into calls and answers into bytes, with authentication and limits",
    may: [GENERATED, KIT, "src/observe/"],
    types: ["src/core/", STORE],
  },
  "src/handlers/": {
    purpose: "the code of each call, under 15 lines",
    may: ["src/core/", GENERATED, KIT],
    types: [STORE],
  },
  "src/core/": {
    purpose: "the logic: sessions, turns, skills, the journal",
    may: [GENERATED, KIT, EVENTS, TOOL],
    types: [STORE, BACKEND, CHANNEL],
  },
  "src/store/": { purpose: "storage: the rules, and three engines", may: [KIT] },
  "src/backends/": {
    purpose: "the servers and programs that answer for an agent",
    may: ["src/outbound/", KIT, EVENTS, TOOL],
  },
  "src/tools/": { purpose: "the tools of agents", may: ["src/outbound/", KIT] },
  "src/channels/": { purpose: "the receivers of announcements", may: ["src/outbound/", GENERATED, KIT] },
  "src/outbound/": { purpose: "the HTTP client of backends, tools and channels, with its limits", may: [KIT] },
  "src/config/": { purpose: "the configuration", may: [GENERATED, KIT] },
  "src/observe/": { purpose: "events, log lines, metrics", may: [KIT] },
  "src/kit/": {
    purpose:
      "shared parts without state: errors, clocks, ids, signing, the grammar of mappings, programs of this machine",
    may: [GENERATED],
  },
  "src/gateway/": {
    purpose: "creates and connects all parts",
    may: [GENERATED, "src/"],
    except: ["src/cli/", "src/console/"],
  },
  "src/cli/": {
    purpose: "the command line: a file for each noun in `commands/`",
    may: [
      "src/gateway/",
      "src/config/",
      "src/observe/",
      KIT,
      // The words of the console for requests and times.
      "src/console/lib/",
      "src/version.ts",
      "generated/clients/",
      "generated/methods.ts",
      "generated/openapi.json",
      "generated/openrpc.json",
      // The scope of each operation, for the weakest key that may call it.
      "generated/routes.ts",
    ],
  },
  "src/console/": {
    purpose: "the console: a client like any other, built into `dist/console`",
    may: [
      "generated/clients/",
      "src/kit/forms.ts",
      "src/kit/visible.ts",
      // The grammar of mappings.
      "src/kit/mapping-paths.ts",
      "src/kit/secret-headers.ts",
    ],
  },
};

const LONGEST_FUNCTION = 120;

function covers(rule: string, path: string): boolean {
  return path === rule || (rule.endsWith("/") && path.startsWith(rule));
}
function allows(rules: readonly string[], path: string): boolean {
  return rules.some((rule) => covers(rule, path));
}

/** The files of every import cycle. */
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

/** The relative imports of Python modules, including those for type checkers only. */
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

/** The imports of a room from other rooms. */
function importsOfRoom(room: string): Import[] {
  const files = filesBelow(room.slice(0, -1));
  return files.flatMap(importsOf).filter((one) => isOurs(one) && !one.to.startsWith(room));
}

/** The functions of a file, each with its name in the file. A file with fewer than `atLeast` lines is not read. */
function functionsIn(file: string, atLeast = 0): { name: string; lines: number }[] {
  const text = readFileSync(join(root, file), "utf8");
  if (text.split("\n").length < atLeast) return [];
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true);
  const found: { name: string; lines: number }[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isFunctionLike(node)) {
      const [first, last] = [node.getStart(), node.end].map((at) => source.getLineAndCharacterOfPosition(at).line);
      const named = node.name ?? (ts.isPropertyAssignment(node.parent) ? node.parent.name : undefined);
      const name = `${file}: ${named?.getText() ?? `line ${Number(first) + 1}`}`;
      found.push({ name, lines: Number(last) - Number(first) + 1 });
    }
    ts.forEachChild(node, visit);
  };
  visit(source);
  return found;
}

function tableOf(rooms: typeof ROOMS): string {
  const show = (path: string) => `\`${path.replace(/^src\/(?=.)/, "").replace(/\.ts$/, "")}\``;
  const list = (paths: readonly string[] = []) => paths.map(show).join(", ");
  const rows = Object.entries(rooms).map(([room, { purpose, may, types, except }]) => {
    const without = except ? ` without ${list(except)}` : "";
    return `| \`${room}\` | ${purpose} | ${list(may)}${without} | ${list(types)} |`;
  });
  return ["| folder | purpose | may import | and types of |", "|---|---|---|---|", ...rows].join("\n");
}

describe("the repository", () => {
  const sources = filesBelow("src");

  it.each(Object.entries(ROOMS))("%s imports what its row allows, and uses all of its row", (room, row) => {
    const { may, types = [], except = [] } = row;
    const imports = importsOfRoom(room);
    const isAllowed = ({ to, typeOnly }: Import) =>
      (allows(may, to) && !allows(except, to)) || (typeOnly && allows(types, to));
    expect(imports.filter((one) => !isAllowed(one))).toEqual([]);
    expect([...may, ...types].filter((rule) => !imports.some(({ to }) => covers(rule, to)))).toEqual([]);
  });

  it(`${PAGE} shows the table of the rooms`, () => {
    const page = readFileSync(join(root, PAGE), "utf8");
    const [shown = ""] = /^\| folder \|.*\n(?:\|.*\n)*/m.exec(page) ?? [];
    const table = `${tableOf(ROOMS)}\n`;
    if (process.env.ROOMS === "renew") writeFileSync(join(root, PAGE), page.replace(shown, table));
    else expect(shown, "ROOMS=renew npx vitest run --project shared test/architecture.test.ts writes it").toBe(table);
  });

  it(`no function has ${LONGEST_FUNCTION} lines or more`, () => {
    const files = ["src", "scripts"].flatMap(filesBelow).filter((file) => /\.tsx?$/.test(file));
    const long = files
      .flatMap((file) => functionsIn(file, LONGEST_FUNCTION))
      .filter(({ lines }) => lines >= LONGEST_FUNCTION);
    expect(long.map(({ name }) => name)).toEqual([]);
  });

  it("the body of a handler has fewer than 15 lines", () => {
    const bodies = filesBelow("src/handlers")
      .flatMap(functionsIn)
      .filter(({ name }) => /: "\w+\.\w+"$/.test(name));
    expect(bodies.length).toBeGreaterThan(30);
    expect(bodies.filter(({ lines }) => lines >= 15)).toEqual([]);
  });

  it("a handler finds agents, turns and sessions only through the rule of `agents`", () => {
    const lookUp = /\bagents\.(?:get|find|list)\(|\bturns\.get\(|\b(?:getTurn|getSession)\(/;
    const handlers = ["rest", "openai", "rpc", "mcp"].flatMap((surface) => filesBelow(`src/handlers/${surface}`));
    expect(handlers.filter((file) => lookUp.test(readFileSync(join(root, file), "utf8")))).toEqual([]);
    const isReach = ({ to }: Import) => /^src\/(?:core|kit)\/reach\.ts$/.test(to);
    const held = new Set(
      handlers
        .flatMap(importsOf)
        .filter(isReach)
        .map(({ from }) => from),
    );
    const starting = [
      "rest/chat",
      "rest/skills",
      "rest/turns",
      "openai/agent-models",
      "rpc/agent",
      "rpc/schedule",
      "rpc/session",
      "rpc/table",
      "mcp/table",
      "mcp/turn-get",
      "mcp/turn-tools",
    ];
    expect([...held].toSorted()).toEqual(starting.map((name) => `src/handlers/${name}.ts`).toSorted());
  });

  it("an engine or a backend never imports another one", () => {
    const engineOf = (path: string) => /^src\/store\/(?!rules\/|tables\/)(\w+)\//.exec(path)?.[1];
    const crossed = sources.flatMap(importsOf).filter(({ from, to }) => {
      return engineOf(from) !== undefined && engineOf(to) !== undefined && engineOf(from) !== engineOf(to);
    });
    expect(crossed).toEqual([]);
  });

  it("the rules of the store import no engine", () => {
    const rules = sources.filter((file) => file.startsWith("src/store/rules/")).flatMap(importsOf);
    expect(rules.filter(({ to }) => /^src\/store\/(?!rules\/)\w+\//.test(to) || to.startsWith("node:"))).toEqual([]);
  });

  it("no two files import each other, directly or through others", () => {
    expect(circlesIn(new Map(sources.map((file) => [file, importsOf(file).map(({ to }) => to)])))).toEqual([]);
  });

  it("the generated clients have no import cycle", () => {
    const typescript = filesBelow("generated/clients/typescript/src");
    expect(circlesIn(new Map(typescript.map((file) => [file, importsOf(file).map(({ to }) => to)])))).toEqual([]);
    expect(circlesIn(pythonImportsBelow("generated/clients/python/src"))).toEqual([]);
  });

  it("every folder of src has a row in the table", () => {
    const folders = readdirSync(join(root, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(folders.map(({ name }) => `src/${name}/`).filter((folder) => !(folder in ROOMS))).toEqual([]);
  });

  it("no source is imported from a test or a script", () => {
    expect(sources.flatMap(importsOf).filter(({ to }) => /^(test|scripts)\//.test(to))).toEqual([]);
  });

  it("only the front creates calls: a door gets a request that it cannot change", () => {
    const opening = sources.filter((file) => /\bOpenCall\b/.test(readFileSync(join(root, file), "utf8")));
    expect(opening).toEqual(["src/wire/call/call.ts", "src/wire/call/front.ts"]);
  });

  it("the wire follows streams of the core, and does not watch the store", () => {
    const wire = sources.filter((file) => file.startsWith("src/wire/"));
    expect(wire.filter((file) => /\.watch\(/.test(readFileSync(join(root, file), "utf8")))).toEqual([]);
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

  it("core and kit do not read the clock and set no timers", () => {
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

  it("the top level has the expected files and no others", () => {
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
