import { existsSync, readFileSync } from "node:fs";
import { posix, resolve } from "node:path";
import { parse } from "yaml";
import { isObject, type Json } from "./json.ts";

/** A place in the specs: a file, relative to their folder, and a JSON pointer into it. */
export type Place = { file: string; pointer: string };

export function show({ file, pointer }: Place): string {
  return `specs/${file}#${pointer}`;
}
export function inside({ file, pointer }: Place, key: string | number): Place {
  return {
    file,
    pointer: `${pointer}/${String(key).replaceAll("~", "~0").replaceAll("/", "~1")}`,
  };
}

/** An error in the specs, with its place. */
export class SpecError extends Error {
  constructor(place: Place | string, message: string) {
    super(`${typeof place === "string" ? place : show(place)}: ${message}`);
    this.name = "SpecError";
  }
}

/** The spec files of one folder, each read once. */
export type SpecFiles = {
  /** The content of a file. */
  file: (name: string) => Json;
  /** The value at a place. */
  at: (place: Place, from: Place) => Json;
  /** The target of a reference in a file. */
  target: (ref: string, from: Place) => Place;
};

export function openSpecs(folder: string): SpecFiles {
  const read = new Map<string, Json>();

  const file = (name: string): Json => {
    const known = read.get(name);
    if (known !== undefined) return known;
    const path = resolve(folder, name);
    if (!existsSync(path)) throw new SpecError(`specs/${name}`, "no such file");
    try {
      // JSON is read as YAML too, because YAML refuses duplicate keys.
      const content = parse(readFileSync(path, "utf8"), { prettyErrors: true }) as Json;
      read.set(name, content);
      return content;
    } catch (error) {
      throw new SpecError(`specs/${name}`, error instanceof Error ? error.message : String(error));
    }
  };

  const target = (ref: string, from: Place): Place => {
    const [path = "", pointer = ""] = ref.split("#");
    if (/^[a-z]+:/i.test(path)) throw new SpecError(from, `"${ref}" leads out of the specs`);
    return { file: path === "" ? from.file : posix.join(posix.dirname(from.file), path), pointer: decodeURI(pointer) };
  };

  const at = (place: Place, from: Place): Json => {
    let node = file(place.file);
    for (const part of place.pointer.split("/").slice(1)) {
      const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
      const next = Array.isArray(node) ? node[Number(key)] : isObject(node) ? node[key] : undefined;
      if (next === undefined) throw new SpecError(from, `nothing is at ${show(place)}`);
      node = next;
    }
    return node;
  };

  return { file, at, target };
}
