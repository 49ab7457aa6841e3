type Node = null | boolean | number | string | Node[] | { [key: string]: Node };

/** A document with each reference to its own parts replaced by what it leads to, for tools that follow none. */
export function dereference(document: unknown): { [key: string]: Node } {
  const root = document as { [key: string]: Node };
  const walk = (node: Node): Node => {
    if (Array.isArray(node)) return node.map(walk);
    if (typeof node !== "object" || node === null) return node;
    const { $ref, ...rest } = node;
    const own = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, walk(value)]));
    if (typeof $ref !== "string") return $ref === undefined ? own : { $ref: walk($ref), ...own };
    const target = $ref
      .split("/")
      .slice(1)
      .reduce<Node>((at, key) => (at as { [key: string]: Node })[key] ?? null, root);
    return { ...(walk(target) as object), ...own };
  };
  return walk(root) as { [key: string]: Node };
}
