import { parseConfig } from "#config/files.ts";
import { blocksOf } from "./blocks.ts";

/** The configuration blocks of a page put together, as a person would have them in one file; references are still references. */
export const configOfPage = async (page: string, names: readonly string[]): Promise<object> => {
  let whole: object = {};
  for (const name of names) {
    const block = blocksOf(page).find((each) => each.language === "json5" && each.name === name);
    if (!block) throw new Error(`${page} has no configuration ${name}`);
    const { value } = await parseConfig("gateway.json5", Buffer.from(block.text));
    whole = merge(whole, value as object);
  }
  return whole;
};

const merge = (one: object, other: object): object => {
  const merged: Record<string, unknown> = { ...one };
  for (const [key, value] of Object.entries(other)) {
    const before = merged[key];
    merged[key] = isRecord(before) && isRecord(value) ? merge(before, value) : value;
  }
  return merged;
};

const isRecord = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value);
