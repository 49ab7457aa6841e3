import { config as conforms } from "#generated/validators/config.js";
import { checkMapping, type MappingAround, type WrittenMapping } from "./check-mappings.ts";
import { createFindings, dotted, type Path } from "./problems.ts";

/** A mapping that is not in the configuration, with its key as `name`. */
export type MappingDraft = { name: string } & Omit<WrittenMapping, "verify">;
/** An error in a draft: its path, and the message that the configuration would get. */
export type DraftFault = { path: Path; message: string; sentence: string };

/** Checks a draft as if `webhooks.mappings` had it. References to variables are not filled in: a draft reads no secrets. */
export async function checkDraft(config: MappingAround, { name, ...mapping }: MappingDraft): Promise<DraftFault[]> {
  const value = { agents: { main: { backend: "echo" } }, webhooks: { mappings: { [name]: structuredClone(mapping) } } };
  const findings = createFindings();
  if (conforms(value)) checkMapping(config, name, mapping, findings);
  else {
    const { explain } = await import("./explain.ts");
    findings.faults.push(...explain(conforms.errors ?? [], value, value));
  }
  return findings.faults.map(({ path, message }) => {
    const place = dotted(path);
    return { path: path.slice(["webhooks", "mappings", name].length), message, sentence: `${place} ${message}` };
  });
}
