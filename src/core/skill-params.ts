import { join } from "node:path";
import { readPlainFile, TooLarge } from "./skill-files.ts";

/** What a skill may be triggered with: a JSON Schema, and whether something fits it. */
export type SkillParams = {
  schema: Readonly<Record<string, unknown>>;
  check: (given: unknown) => readonly { pointer: string; message: string }[];
};

const FILE = "params.schema.json";
const FILE_LIMIT = 64 * 1024;
const FAULTS_TOLD = 20;

/** The schema beside a SKILL.md; undefined where there is none, and why it is none where it is no schema. */
export const readSkillParams = async (dir: string): Promise<SkillParams | string | undefined> => {
  let text: string;
  try {
    text = await readPlainFile(join(dir, FILE), FILE_LIMIT);
  } catch (error) {
    if (error instanceof TooLarge) return `${FILE} ${error.message}`;
    const { code } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? undefined : `${FILE} cannot be read (${code})`;
  }
  let schema: unknown;
  try {
    schema = JSON.parse(text);
  } catch {
    return `${FILE} is not JSON`;
  }
  if (!isObject(schema) || schema.type !== "object") return `${FILE} is no JSON Schema of an object ("type": "object")`;
  return await compile(schema);
};

/** What compiles schemas is loaded where a skill has one. */
const compile = async (schema: Record<string, unknown>): Promise<SkillParams | string> => {
  const isOld = typeof schema.$schema === "string" && schema.$schema.includes("draft-07");
  const { Ajv } = isOld ? await import("ajv") : { Ajv: (await import("ajv/dist/2020.js")).Ajv2020 };
  const ajv = new Ajv({ strict: false, validateFormats: false, allErrors: true, logger: false });
  try {
    const validate = ajv.compile(schema);
    const check = (given: unknown) => {
      if (validate(given)) return [];
      return (validate.errors ?? []).slice(0, FAULTS_TOLD).map((fault) => ({
        pointer: fault.instancePath,
        message: wordsOf(fault),
      }));
    };
    return { schema, check };
  } catch (error) {
    return `${FILE} is no JSON Schema: ${(error as Error).message.split("\n")[0]}`;
  }
};

const wordsOf = ({ keyword, params, message = "is not what the skill takes" }: Fault): string =>
  keyword === "additionalProperties"
    ? `has ${String(params.additionalProperty)}, which the skill does not take`
    : message;
type Fault = { keyword: string; params: Record<string, unknown>; message?: string | undefined };

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
