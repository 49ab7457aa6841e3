// Loaded before the gateway: delays the module from which REST reads its contract.
import { register } from "node:module";

const LATER_MS = Number(process.env.CONTRACT_LATER_MS ?? 500);

// The hook itself does not wait: from Node 24 on that would block the complete process.
const resolve = `async (name, context, next) => {
  const found = await next(name, context);
  if (!name.startsWith("./openapi-")) return found;
  const late = "export * from " + JSON.stringify(found.url) + "; export { default } from " + JSON.stringify(found.url) +
    "; await new Promise((resolve) => setTimeout(resolve, ${LATER_MS}));";
  return { url: "data:text/javascript," + encodeURIComponent(late), format: "module", shortCircuit: true };
}`;
register(`data:text/javascript,export const resolve = ${encodeURIComponent(resolve)}`);
