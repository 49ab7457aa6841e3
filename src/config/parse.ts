import { extname } from "node:path";
import { ConfigError } from "./problems.ts";
import type { Source } from "./source.ts";

/** Reads the text of a configuration file, by the ending of its name. Throws ConfigError with the place of what is wrong. */
export async function parseConfig(file: string, bytes: Uint8Array): Promise<Source> {
  const text = decode(file, bytes);
  // Each parser is loaded only for a file that needs it: a gateway reads one.
  switch (extname(file).toLowerCase()) {
    case ".json5":
    case ".json":
      return (await import("./parse-json.ts")).parseJson(file, text);
    case ".yaml":
    case ".yml":
      return (await import("./parse-yaml.ts")).parseYaml(file, text);
    default:
      throw refuse(file, "has a name that does not end in .json5, .json, .yaml or .yml: rename it.");
  }
}

function decode(file: string, bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw refuse(file, "is not UTF-8 text: save it as UTF-8.");
  }
}

const refuse = (file: string, message: string) =>
  new ConfigError([{ file, line: null, column: null, key: "", message: `the file ${message}` }]);
