import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, type Pair, parseDocument } from "yaml";
import { ConfigError, type ConfigProblem, type Path, type Position, type Source } from "./problems.ts";

/** Reads YAML 1.2, one document. */
export function parseYaml(file: string, text: string): Source {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false, version: "1.2" });
  const position = (offset: number): Position => {
    const { line, col } = lines.linePos(offset);
    return { line: Math.max(line, 1), column: Math.max(col, 1) };
  };
  const faults = [...document.errors, ...document.warnings];
  if (faults.length > 0) {
    throw new ConfigError(faults.map((fault) => notYaml(file, position(fault.pos[0]), fault.code, fault.message)));
  }
  return {
    file,
    value: evaluate(),
    place: (path, on) => find(path, on),
  };

  function evaluate(): unknown {
    try {
      return document.toJS() ?? {};
    } catch (error) {
      // An alias without an anchor, or aliases that expand without limit.
      throw new ConfigError([notYaml(file, { line: 1, column: 1 }, "ALIAS", (error as Error).message)]);
    }
  }

  function find(path: Path, on: "key" | "value"): Position {
    const start = (node: unknown): Position => position((node as Node | null)?.range?.[0] ?? 0);
    let node: unknown = document.contents;
    let at = start(node);
    for (const [depth, step] of path.entries()) {
      if (isAlias(node)) node = node.resolve(document);
      if (isSeq(node)) {
        node = node.items[Number(step)];
        if (node === undefined) return at;
        at = start(node);
      } else {
        const pairs: Pair[] = isMap(node) ? node.items : [];
        const pair = pairs.find(({ key }) => String(isScalar(key) ? key.value : key) === step);
        if (pair === undefined) return at;
        node = pair.value;
        at = start((on === "key" && depth === path.length - 1) || node === null ? pair.key : node);
      }
    }
    return at;
  }
}

function notYaml(file: string, at: Position, code: string, said: string): ConfigProblem {
  const message =
    code === "DUPLICATE_KEY"
      ? "this key is written twice: keep one of them."
      : code === "MULTIPLE_DOCS"
        ? "the file contains several documents: keep one of them."
        : // The parser quotes the file after a colon, and that text may be a secret.
          `the file is not YAML: ${said.replace(/:.*|\.$/s, "")}. Text with \${…}, {, [ or : is best quoted.`;
  return { file, ...at, key: "", message };
}
