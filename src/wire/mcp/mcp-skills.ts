import type { McpServer } from "@modelcontextprotocol/server";
import {
  type Skill,
  type SkillReadResult,
  type SkillSource,
  SkillsExtension,
  skillEntry,
} from "@modelcontextprotocol/server/ext/skills";
import type { McpSkill, McpSkillFile, McpSkills } from "#core/mcp-tools.ts";
import type { McpRequest } from "./mcp-request.ts";
import { guarded } from "./mcp-results.ts";

/** The skills extension: the files of the skills that a caller may trigger. A skill whose files do not follow its rules is left out. */
export function createMcpSkills({ list, find }: McpSkills) {
  const entryOf = createEntries();

  const sourceFor = (request: McpRequest): SkillSource => {
    const { caller } = request;
    const entries = () =>
      guarded(request, async () => {
        const found: Skill[] = [];
        for (const skill of list(caller)) {
          const entry = await entryOf(skill);
          if (entry) found.push(entry);
        }
        return found;
      });
    const skillAt = (uri: string) => find(/^skill:\/\/([^/]*)\//.exec(uri)?.[1] ?? "", caller);
    return {
      list: async () => ({ skills: await entries() }),
      get: (uri) =>
        guarded(request, async () => {
          const skill = skillAt(uri);
          return skill && uri === `${rootOf(skill.id)}SKILL.md` ? await entryOf(skill) : undefined;
        }),
      read: (uri) =>
        guarded(request, async () => {
          const skill = skillAt(uri);
          const path = skill && pathOf(uri.slice(rootOf(skill.id).length));
          const file = path && (await skill.files()).find((one) => one.path === path);
          const bytes = file && (await file.read());
          return bytes ? contentOf(path, bytes) : undefined;
        }),
      listResources: async () => (await entries()).map(resourceOf),
    };
  };

  return {
    /** Serves the skills of a caller for the methods that read or declare them. Returns false if there are none to serve. */
    attach(mcp: McpServer, request: McpRequest): boolean {
      if (!SKILL_METHODS.test(String(request.method)) || list(request.caller).length === 0) return false;
      new SkillsExtension({ source: sourceFor(request) }).attach(mcp);
      return true;
    },
  };
}

/** A skill as it was read. `isWhole`: each of its files was. */
type ReadSkill = { entry: Skill | undefined; isWhole: boolean };

/**
 * Returns the function for the entry of a skill, which is read again if a file has changed. Callers share one reading, and one skill is read at a time,
 * so that few files are open and the contents of one skill are in memory. A skill with a file that could not be read is read again at the next call.
 */
function createEntries() {
  const readings = new Map<string, { state: string; reading: Promise<ReadSkill> }>();
  let last: Promise<unknown> = Promise.resolve();
  return async ({ id, files }: McpSkill): Promise<Skill | undefined> => {
    const found = await files();
    const state = JSON.stringify(found);
    const before = readings.get(id);
    if (before?.state === state) return (await before.reading).entry;
    const reading = last.then(() => readSkill(id, found));
    const stored = { state, reading };
    const forget = () => {
      if (readings.get(id) === stored) readings.delete(id);
    };
    readings.set(id, stored);
    last = reading.then(({ isWhole }) => isWhole || forget(), forget);
    return (await reading).entry;
  };
}

async function readSkill(id: string, files: readonly McpSkillFile[]): Promise<ReadSkill> {
  const contents: [string, Uint8Array][] = [];
  for (const file of files) {
    const bytes = await file.read();
    if (bytes) contents.push([file.path, bytes]);
  }
  const entry = await skillEntry(id, Object.fromEntries(contents)).catch(() => undefined);
  return { entry, isWhole: contents.length === files.length };
}

/** All others are answered without the skills of the caller, which may be many. */
const SKILL_METHODS = /^(skills|resources)\/|^(initialize|server\/discover|subscriptions\/listen)$/;

/** The instructions of a skill in a list of resources, for clients that do not know the extension. */
function resourceOf({ uri, frontmatter: { name, description } }: Skill) {
  return { uri, name, description, mimeType: MARKDOWN };
}

/** The path of a file from the rest of its URI; undefined if it is not percent-encoded UTF-8. */
function pathOf(encoded: string): string | undefined {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return undefined;
  }
}

const MARKDOWN = "text/markdown";
const TYPES: Readonly<Record<string, string>> = { md: MARKDOWN, json: "application/json", html: "text/html" };

/** A file as text if it is UTF-8, else as bytes. */
function contentOf(path: string, bytes: Uint8Array): SkillReadResult {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    return { text, mimeType: TYPES[/[^.]*$/.exec(path)?.[0] ?? ""] ?? "text/plain" };
  } catch {
    return { bytes, mimeType: "application/octet-stream" };
  }
}

function rootOf(id: string): string {
  return `skill://${encodeURIComponent(id)}/`;
}
