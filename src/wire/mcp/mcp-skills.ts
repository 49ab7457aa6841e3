import type { McpServer } from "@modelcontextprotocol/server";
import {
  type Skill,
  type SkillReadResult,
  type SkillSource,
  SkillsExtension,
  skillEntry,
} from "@modelcontextprotocol/server/ext/skills";
import type { McpSkill, McpSkills } from "#core/mcp-tools.ts";
import type { McpRequest } from "./mcp-request.ts";
import { guarded } from "./mcp-results.ts";

type Known = { state: string; skill: Skill | undefined };

/** The skills extension: the files of the skills that a caller may trigger. A skill whose files do not follow its rules is left out. */
export function createMcpSkills({ list, find }: McpSkills) {
  const known = new Map<string, Known>();

  /** The entry of a skill, read again if a file has changed. */
  const entryOf = async (skill: McpSkill): Promise<Skill | undefined> => {
    const files = await skill.files();
    const state = JSON.stringify(files);
    const before = known.get(skill.id);
    if (before?.state === state) return before.skill;
    const contents = await Promise.all(files.map(async ({ path }) => [path, await skill.read(path)] as const));
    const read = Object.fromEntries(contents.filter((one): one is [string, Uint8Array] => one[1] !== undefined));
    const entry = await skillEntry(skill.id, read).catch(() => undefined);
    known.set(skill.id, { state, skill: entry });
    return entry;
  };

  const sourceFor = (request: McpRequest): SkillSource => {
    const { caller } = request;
    const entries = () =>
      guarded(request, async () => {
        const found = await Promise.all(list(caller).map(entryOf));
        return found.filter((entry) => entry !== undefined);
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
          const bytes = path && (await skill.read(path));
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
