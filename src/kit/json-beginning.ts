/** Values that are nested deeper are left out. */
const MOST_DEPTH = 64;

/**
 * The beginning of a JSON value as JSON: at least `most` characters if there are as many, and not many more. The work depends on `most`, not on the
 * size of the value.
 */
export function jsonBeginning(value: unknown, most: number): { json: string; isCut: boolean } {
  let json = "";
  let isCut = false;
  function write(node: unknown, depth: number): void {
    if (typeof node === "string") {
      isCut ||= node.length > most;
      json += JSON.stringify(node.slice(0, most));
    } else if (typeof node !== "object" || node === null) json += JSON.stringify(node) ?? "null";
    else if (depth === MOST_DEPTH) isCut = true;
    else if (Array.isArray(node)) {
      json += "[";
      for (let n = 0; n < node.length && hasRoom(); n++) {
        if (n > 0) json += ",";
        write(node[n], depth + 1);
      }
      json += "]";
    } else {
      json += "{";
      let comma = "";
      for (const key in node) {
        if (!Object.hasOwn(node, key)) continue;
        if (!hasRoom()) break;
        json += `${comma}${JSON.stringify(key.slice(0, most))}:`;
        comma = ",";
        write((node as Record<string, unknown>)[key], depth + 1);
      }
      json += "}";
    }
  }
  function hasRoom(): boolean {
    isCut ||= json.length >= most;
    return !isCut;
  }
  write(value, 0);
  return { json, isCut };
}
