import { parseConfig } from "#config/files.ts";
import { merge } from "#test/harness/gateway.ts";
import { blocksOf } from "./blocks.ts";

/** The configuration blocks of a page in one file, as a user would combine them; references are not resolved. */
export async function configOfPage(page: string, names: readonly string[]): Promise<object> {
  let whole: object = {};
  for (const name of names) {
    const block = blocksOf(page).find((each) => each.language === "json5" && each.name === name);
    if (!block) throw new Error(`${page} has no configuration ${name}`);
    const { value } = await parseConfig("gateway.json5", Buffer.from(block.text));
    whole = merge(whole, value as object);
  }
  return whole;
}
