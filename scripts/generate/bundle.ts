import { grammar, homes } from "./grammar.ts";
import { isObject, type Json, type JsonObject, mapValues, object, sortKeys, text } from "./json.ts";
import { inside, type Place, SpecError, type SpecFiles, show } from "./spec-files.ts";

/** A document whose references point only to its own components. */
export type Bundle = { document: JsonObject; components: Record<string, JsonObject> };

/**
 * Reads a spec and everything that it refers to into one document. A shared shape has the last word of the place where it was defined. Two shapes of
 * one name are an error, so a name never depends on the order of reading.
 */
export function bundle(specs: SpecFiles, file: string, kind: string): Bundle {
  const components: Record<string, JsonObject> = {};
  const sources = new Map<string, string>();

  /** Adds the shared object at a place to the components, and returns its name. */
  const share = (place: Place, childKind: string, from: Place): string => {
    const home = homes[childKind] ?? "";
    const name = nameOf(place);
    if (!/^[A-Za-z][\w.-]*$/.test(name)) throw new SpecError(place, `"${name}" is no name for a shared object`);
    const id = `${home}/${name}`;
    const known = sources.get(id);
    if (known === show(place)) return name;
    if (known !== undefined) throw new SpecError(from, `${show(place)} and ${known} both are called "${name}"`);
    sources.set(id, show(place));
    components[home] ??= {};
    components[home][name] = {}; // Reserves the name while the references of the shape are read, which may include the shape itself.
    components[home][name] = walk(specs.at(place, from), childKind, place);
    return name;
  };

  /** A component that only refers to a shape of its own name is that shape. */
  const follow = (place: Place, from: Place): Place => {
    const node = specs.at(place, from);
    if (!isObject(node) || typeof node.$ref !== "string" || Object.keys(node).length > 1) return place;
    const target = specs.target(node.$ref, place);
    return nameOf(target) === nameOf(place) ? follow(target, place) : place;
  };

  const refer = (node: JsonObject, childKind: string, at: Place): Json => {
    const { $ref, ...siblings } = node;
    const target = follow(specs.target(String($ref), at), at);
    const to = specs.at(target, at);
    if (homes[childKind] === undefined) {
      if (Object.keys(siblings).length > 0) throw new SpecError(at, "nothing may stand beside this $ref");
      return walk(to, childKind, target);
    }
    // The default of a shared shape applies wherever the shape is used, so it is written there.
    const lifted: JsonObject = {};
    if (childKind === "schema" && isObject(to) && to.default !== undefined) lifted.default = to.default;
    const name = share(target, childKind, at);
    const beside = childKind === "schema" ? (walk(siblings, childKind, at) as JsonObject) : siblings;
    return { $ref: `#/components/${homes[childKind]}/${name}`, ...lifted, ...beside };
  };

  const walk = (node: Json, nodeKind: string, at: Place): Json => {
    if (nodeKind === "-") return node;
    if (nodeKind.endsWith("[]")) {
      if (!Array.isArray(node)) throw new SpecError(at, "must be a list");
      return node.map((item, index) => walk(item, nodeKind.slice(0, -2), inside(at, index)));
    }
    if (nodeKind === "schema" && typeof node === "boolean") return node;
    if (!isObject(node)) throw new SpecError(at, "must be an object");
    if (nodeKind.endsWith("*")) {
      return mapValues(node, (value, key) => walk(value, nodeKind.slice(0, -1), inside(at, key)));
    }
    if (nodeKind === "components") return shareAll(node, at);
    if ("$ref" in node) return refer(node, nodeKind, at);
    const known = grammar[nodeKind] ?? {};
    const result: JsonObject = {};
    for (const [key, value] of Object.entries(node)) {
      const childKind = Object.hasOwn(known, key) ? known[key] : undefined;
      if (childKind === undefined) throw new SpecError(at, `the generator does not know "${key}" on a ${nodeKind}`);
      if (key === "$defs")
        for (const name of Object.keys(value as JsonObject)) share(inside(inside(at, key), name), "schema", at);
      else if (key !== "$schema") result[key] = walk(value, childKind, inside(at, key));
    }
    return result;
  };

  /** The components of a document itself are included, even if nothing refers to them. */
  const shareAll = (node: JsonObject, at: Place): Json => {
    for (const [home, entries] of Object.entries(node)) {
      const childKind = grammar.components?.[home];
      if (childKind === undefined) throw new SpecError(at, `the generator does not know "${home}" among components`);
      const single = childKind.slice(0, -1);
      if (homes[single] !== home) {
        components[home] = walk(entries, childKind, inside(at, home)) as JsonObject;
        continue;
      }
      for (const name of Object.keys(entries as JsonObject)) {
        const place = inside(inside(at, home), name);
        share(follow(place, at), single, place);
      }
    }
    return null;
  };

  const { components: _, ...document } = walk(specs.file(file), kind, { file, pointer: "" }) as JsonObject;
  return { document, components: mapValues(sortKeys(components), sortKeys) };
}

/** An object of a bundle, or the shared object that it refers to. */
export function resolve(node: Json | undefined, components: Bundle["components"]): JsonObject {
  const [, home = "", name = ""] = /^#\/components\/(\w+)\/(.+)$/.exec(text(object(node).$ref)) ?? [];
  return home === "" ? object(node) : resolve(components[home]?.[name], components);
}

/** The last word of a pointer; for a whole file, the name of the file. */
function nameOf({ file, pointer }: Place): string {
  const word = pointer.split("/").at(-1) || (file.split("/").at(-1) ?? "").replace(/\..*$/, "");
  return word.replaceAll("~1", "/").replaceAll("~0", "~");
}
