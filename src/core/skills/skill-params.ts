import { join } from "node:path";
import { demandOf, hintOf } from "#kit/fault-words.ts";
import { readPlainFile } from "./skill-files.ts";

/** The parameters that a skill may be triggered with: their JSON Schema, and a check against it. */
export type SkillParams = {
  schema: Readonly<Record<string, unknown>>;
  check: (given: unknown) => readonly { pointer: string; message: string }[];
};

const FILE = "params.schema.json";
const FILE_LIMIT = 64 * 1024;
const FAULTS_TOLD = 20;
const HINTED = 5;
/** A stranger chooses the names of unknown fields: only so much of one is repeated. */
const NAME_LIMIT = 100;

/** The schema beside a SKILL.md; undefined where there is none, and why it is none where it is no schema. */
export const readSkillParams = async (dir: string): Promise<SkillParams | string | undefined> => {
  const text = await readPlainFile(join(dir, FILE), FILE_LIMIT);
  if (text === undefined) return undefined;
  if (typeof text === "object") return `${FILE} ${text.fault}`;
  let schema: unknown;
  try {
    schema = JSON.parse(text);
  } catch {
    return `${FILE} is not JSON`;
  }
  if (!isObject(schema) || schema.type !== "object") return `${FILE} is no JSON Schema of an object ("type": "object")`;
  return await compile(schema);
};

/** The compiler of schemas is loaded only if a skill has one. */
const compile = async (schema: Record<string, unknown>): Promise<SkillParams | string> => {
  const isOld = typeof schema.$schema === "string" && schema.$schema.includes("draft-07");
  const { Ajv } = isOld ? await import("ajv") : { Ajv: (await import("ajv/dist/2020.js")).Ajv2020 };
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true, verbose: true, logger: false });
  try {
    const validate = ajv.compile(schema);
    const check = (given: unknown) => {
      if (validate(given)) return [];
      return (validate.errors ?? []).slice(0, FAULTS_TOLD).map(inWords);
    };
    return { schema, check };
  } catch (error) {
    return `${FILE} is no JSON Schema: ${(error as Error).message.split("\n")[0]}`;
  }
};

type Found = {
  keyword: string;
  instancePath: string;
  params: Record<string, unknown>;
  message?: string | undefined;
  parentSchema?: Record<string, unknown> | undefined;
};

const inWords = (fault: Found, n: number): { pointer: string; message: string } => {
  const { keyword, instancePath: pointer, params, message = "is not what the skill takes", parentSchema } = fault;
  if (keyword === "required") return { pointer: below(pointer, params.missingProperty), message: "is required" };
  if (keyword === "additionalProperties") {
    const name = String(params.additionalProperty);
    const { properties } = parentSchema ?? {};
    const hint = n < HINTED ? hintOf(name, isObject(properties) ? Object.keys(properties) : []) : "";
    return { pointer: below(pointer, name), message: `is none that the skill takes${hint}` };
  }
  const demand = demandOf(fault);
  return { pointer, message: demand === undefined ? message : `must ${demand}` };
};

const below = (pointer: string, name: unknown): string =>
  `${pointer}/${String(name).slice(0, NAME_LIMIT).replaceAll("~", "~0").replaceAll("/", "~1")}`;

export const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
