import { constants } from "node:fs";
import { open, readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Node } from "yaml";
import { compileCheck } from "#core/json-schema.ts";
import type { FaultText } from "#kit/fault-words.ts";

/** A folder with a SKILL.md, in the Agent Skills format. */
export type Skill = {
  skillId: string;
  description: string;
  license: string | undefined;
  compatibility: string | undefined;
  metadata: Readonly<Record<string, string>>;
  allowedTools: readonly string[];
  body: string;
  dir: string;
  /** The parameters that it may be triggered with, if it declares them. */
  params: SkillParams | undefined;
};

export type InvalidSkill = { dir: string; reason: string };

/** The Agent Skills format, agentskills.io. */
const NAME = /^[a-z0-9]+(-[a-z0-9]+)*$/;
const NAME_LIMIT = 64;
/** A skill is read at `/api/v1/skills/{skill_id}`, and these are operations there. */
const RESERVED = ["list", "trigger"];
const DESCRIPTION_LIMIT = 1024;
const COMPATIBILITY_LIMIT = 500;
const FILE_LIMIT = 256 * 1024;

/** Reads the skills of all folders; a folder that is not a skill is omitted and reported. Not complete: a folder could not be read. */
export async function readSkills(dirs: readonly string[]) {
  const found = new Map<string, Skill>();
  const invalid: InvalidSkill[] = [];
  let isWhole = true;
  for (const dir of dirs) {
    const folders = await foldersOf(dir, invalid);
    isWhole &&= folders !== undefined;
    for (const name of folders ?? []) {
      const folder = join(dir, name);
      const skill = await readSkill(folder, name);
      if (skill === undefined) continue;
      if (typeof skill === "string") invalid.push({ dir: folder, reason: skill });
      else if (found.has(name)) invalid.push({ dir: folder, reason: `another folder has the skill ${name}` });
      else found.set(name, skill);
    }
  }
  return { found, invalid, isWhole };
}

async function foldersOf(dir: string, invalid: InvalidSkill[]): Promise<string[] | undefined> {
  try {
    const entries = await readdir(dir, { withFileTypes: true });
    for (const entry of entries) {
      if (entry.isSymbolicLink())
        invalid.push({ dir: join(dir, entry.name), reason: "it is a symbolic link: put the folder here" });
    }
    return entries
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name)
      .sort();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    invalid.push({ dir, reason: `this folder of skills.dirs cannot be read (${code})` });
    return undefined;
  }
}

/** The skill, why it is none, or undefined for a folder without a SKILL.md. */
async function readSkill(dir: string, folder: string): Promise<Skill | string | undefined> {
  const text = await readPlainFile(join(dir, "SKILL.md"), FILE_LIMIT);
  if (text === undefined) return undefined;
  if (typeof text === "object") return `SKILL.md ${text.fault}`;
  const parts = /^\ufeff?---\r?\n([\s\S]*?)\r?\n---(?:\r?\n|$)([\s\S]*)$/.exec(text);
  if (!parts) return "SKILL.md does not begin with a front matter between two lines of ---";
  let matter: unknown;
  try {
    matter = await readMatter(parts[1] as string);
  } catch (error) {
    return `the front matter is not YAML: ${(error as Error).message.split("\n")[0]}`;
  }
  const skill = skillOf(dir, folder, matter, (parts[2] as string).trim());
  if (typeof skill === "string") return skill;
  const params = await readSkillParams(dir);
  return typeof params === "string" ? params : { ...skill, params };
}

/** Reads a front matter. Metadata are texts, as written: a version 1.0 is not a number. Throws if it is not YAML. */
async function readMatter(text: string): Promise<unknown> {
  const { isMap, isScalar, parseDocument } = await import("yaml");
  const document = parseDocument(text);
  if (document.errors[0]) throw document.errors[0];
  const matter: unknown = document.toJS({ maxAliasCount: 0 });
  if (!isMap(document.contents)) return matter;
  const metadata: unknown = document.contents.get("metadata");
  if (!isMap(metadata)) return matter;
  const written = (node: unknown): string =>
    isScalar(node) ? (node.source ?? "") : JSON.stringify((node as Node).toJS(document));
  const texts = metadata.items.map(({ key, value }) => [written(key), written(value)]);
  return { ...(matter as object), metadata: Object.fromEntries(texts) };
}

function skillOf(dir: string, folder: string, matter: unknown, body: string): Omit<Skill, "params"> | string {
  if (!isObject(matter)) return "the front matter is not a map";
  const { name, description, license, compatibility, metadata = {}, "allowed-tools": tools } = matter;
  if (name === undefined) return "name is missing";
  if (typeof name !== "string" || !NAME.test(name) || name.length > NAME_LIMIT) {
    return "name is not 1 to 64 lower-case letters, digits and single hyphens";
  }
  if (RESERVED.includes(name)) return `the name ${name} is reserved: give the skill and its folder another one`;
  if (name !== folder) return `name is ${name}, but the folder is ${folder}`;
  if (description === undefined) return "description is missing";
  if (!isTextUpTo(DESCRIPTION_LIMIT, description)) return "description is not a text of 1 to 1024 characters";
  if (license !== undefined && typeof license !== "string") return "license is not a text";
  if (compatibility !== undefined && !isTextUpTo(COMPATIBILITY_LIMIT, compatibility))
    return "compatibility is not a text of 1 to 500 characters";
  if (tools !== undefined && typeof tools !== "string")
    return "allowed-tools is not a text, its tools parted by spaces";
  if (!isObject(metadata)) return "metadata is not a map";
  return {
    skillId: name,
    description,
    license,
    compatibility,
    metadata: metadata as Record<string, string>,
    allowedTools: tools?.split(/\s+/).filter(Boolean) ?? [],
    body,
    dir,
  };
}

/** As the format counts characters: one outside of the first 65536 is one. */
function isTextUpTo(most: number, value: unknown): value is string {
  return typeof value === "string" && value.trim() !== "" && [...value].length <= most;
}

/**
 * The text of a file, unless it is a link or a pipe, which would block its reader: the opened file is checked, whatever had its name a moment before.
 * Undefined if there is none; a fault is the rest of a sentence about the file.
 */
export async function readPlainFile(path: string, most: number): Promise<string | { fault: string } | undefined> {
  try {
    await using file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
    const stats = await file.stat();
    // Reading a folder throws its own error.
    if (!stats.isFile() && !stats.isDirectory()) return { fault: "cannot be read (it is not a file)" };
    if (stats.size > most) return { fault: `is larger than ${most / 1024} KiB` };
    return await file.readFile("utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? undefined : { fault: `cannot be read (${code})` };
  }
}

/** The parameters that a skill may be triggered with: their JSON Schema, and a check against it. */
export type SkillParams = {
  schema: Readonly<Record<string, unknown>>;
  check: (given: unknown) => readonly FaultText[];
};

const PARAMS_FILE = "params.schema.json";
const PARAMS_LIMIT = 64 * 1024;

/** The schema next to a SKILL.md; undefined if there is none, and the reason if it is not a schema. */
async function readSkillParams(dir: string): Promise<SkillParams | string | undefined> {
  const text = await readPlainFile(join(dir, PARAMS_FILE), PARAMS_LIMIT);
  if (text === undefined) return undefined;
  if (typeof text === "object") return `${PARAMS_FILE} ${text.fault}`;
  let schema: unknown;
  try {
    schema = JSON.parse(text);
  } catch {
    return `${PARAMS_FILE} is not JSON`;
  }
  if (!isObject(schema) || schema.type !== "object")
    return `${PARAMS_FILE} is not a JSON Schema of an object ("type": "object")`;
  return await compile(schema);
}

async function compile(schema: Record<string, unknown>): Promise<SkillParams | string> {
  try {
    return { schema, check: await compileCheck(schema) };
  } catch (error) {
    return `${PARAMS_FILE} is not a JSON Schema: ${(error as Error).message.split("\n")[0]}`;
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
