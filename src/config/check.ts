import type { CheckedConfig } from "./conform.ts";
import { nearest } from "./nearest.ts";
import type { Fault, Path } from "./problems.ts";

/** What this build has; the schema knows more. */
export type Built = { stores: readonly string[]; backends: readonly string[] };

/** What a check finds: faults refuse the configuration, warnings are logged. */
export type Findings = { faults: Fault[]; warnings: Fault[] };

/** What the schema cannot say of agents, the store, channels and mappings: that what one key names is there. */
export function checkNames(config: CheckedConfig, built: Built): Findings {
  const faults: Fault[] = [];
  const warnings: Fault[] = [];
  const refuse = (path: Path, message: string) => faults.push({ path, on: "value", message });
  const agents = Object.keys(config.agents);
  const channels = Object.keys(config.channels);
  const refuseUnless = (known: readonly string[], what: string, path: Path, name: string | undefined) => {
    if (name === undefined || known.includes(name)) return;
    const meant = nearest(name, known);
    const hint = meant ? `did you mean \`${meant}\`?` : `there is ${known.length ? listed(known) : "none"}.`;
    refuse(path, `names ${what} that is not configured; ${hint}`);
  };

  if (!built.stores.includes(config.store.type)) {
    refuse(
      ["store", "type"],
      `is \`${config.store.type}\`, which this version does not have yet: use ${listed(built.stores)}.`,
    );
  }
  for (const [name, { backend }] of Object.entries(config.agents)) {
    if (built.backends.includes(backend)) continue;
    refuse(
      ["agents", name, "backend"],
      `is \`${backend}\`, which this version does not have yet: use ${listed(built.backends)}.`,
    );
  }

  const { defaultAgent, announceTo } = config.gateway;
  refuseUnless(agents, "an agent", ["gateway", "defaultAgent"], defaultAgent);
  if (defaultAgent === undefined && agents.length > 1) {
    const message = `is missing: with several agents, say which one answers a request that names none (${listed(agents)}).`;
    faults.push({ path: ["gateway", "defaultAgent"], on: "key", message });
  }
  refuseUnless(channels, "a channel", ["gateway", "announceTo"], announceTo);

  for (const [name, mapping] of Object.entries(config.webhooks.mappings)) {
    const at = ["webhooks", "mappings", name];
    refuseUnless(agents, "an agent", [...at, "agent"], mapping.agent);
    const stray = strayBrace(mapping.message);
    if (stray !== undefined) {
      refuse(
        [...at, "message"],
        `holds \`${stray}\`, which is no placeholder: write {body.<path>} or {headers.<name>}, or {{ for a brace.`,
      );
    }
    if (mapping.delivery === "announce" && mapping.channel !== undefined && !channels.includes(mapping.channel)) {
      const message = "is not among `channels`, so announcements of this mapping reach subscribers alone.";
      warnings.push({ path: [...at, "channel"], on: "value", message });
    }
  }
  return { faults, warnings };
}

/** The first brace of a template that begins no placeholder, with some of what follows it. */
function strayBrace(template: string): string | undefined {
  const rest = template.replaceAll("{{", "").replace(/\{(body|headers)\.[^{}\s]+\}/g, "");
  return /\{[^{}]{0,20}\}?/.exec(rest)?.[0];
}

export const listed = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(", ");
