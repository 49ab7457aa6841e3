// Node 20 has no `globSync`, which `@modelcontextprotocol/conformance` imports and calls only for its own sources.
import { register } from "node:module";

const hooks = `
const WITH_GLOB = "data:text/javascript," + encodeURIComponent('export * from "node:fs"; export const globSync = () => [];');
export function resolve(specifier, context, next) {
  const isTheirs = specifier === "fs" && context.parentURL?.includes("/@modelcontextprotocol/conformance/");
  return isTheirs ? { url: WITH_GLOB, shortCircuit: true } : next(specifier, context);
}`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);
