import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";

/** The repository. */
export const root = resolve(import.meta.dirname, "../..");

export type Import = { from: string; to: string; typeOnly: boolean };

export function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = `${folder}/${entry.name}`;
    if (entry.isDirectory()) return filesBelow(path);
    return /\.(tsx?|js)$/.test(entry.name) ? [path] : [];
  });
}

const IMPORT =
  /(?:^|\n)\s*(import|export)\s+(type\s+)?([^;"']*?\s+from\s+)?["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']\s*\)/g;

/** Every import of a file as a path from the root, or the name of a package. */
export function importsOf(file: string): Import[] {
  return [...readFileSync(join(root, file), "utf8").matchAll(IMPORT)].map(([, , type, names, static_, dynamic]) => {
    const target = (static_ ?? dynamic) as string;
    const onlyTypes = names
      ?.match(/\{([^}]*)\}/)?.[1]
      ?.split(",")
      .filter((name) => name.trim() !== "")
      .every((name) => name.trim().startsWith("type "));
    return { from: file, to: pathOf(file, target), typeOnly: type !== undefined || onlyTypes === true };
  });
}

function pathOf(file: string, target: string): string {
  if (target.startsWith("#generated/")) return target.slice(1);
  if (target.startsWith("#")) return `src/${target.slice(1)}`;
  return target.startsWith(".") ? relative(root, resolve(root, dirname(file), target)) : target;
}
