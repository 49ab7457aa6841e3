import { nearest } from "#kit/nearest.ts";
import type { Program } from "./config.ts";
import type { CheckedConfig } from "./conform.ts";
import type { Findings, Path } from "./problems.ts";

/** The stores and backends that this build has; the schema knows more. */
export type Built = {
  stores: readonly string[];
  backends: readonly string[];
  /** The command that installs the packages which these kinds need and this machine lacks; undefined when all are there. */
  missingPackages?: (kinds: readonly string[]) => string | undefined;
  /** Why a program cannot be started; undefined where nothing speaks against it. */
  programFlaw?: (program: Program) => { at: "run" | "cwd"; message: string } | undefined;
};

/** An address whose scheme is another one than PostgreSQL's. */
const FOREIGN = /^(?!(?:postgres|postgresql):)[a-z][a-z\d+.-]*:\/\//i;

/** Checks beyond the schema, of agents, the store and channels: each name that a key refers to must exist. */
export function checkNames(config: CheckedConfig, built: Built, { refuse }: Findings): void {
  const agents = Object.keys(config.agents);
  const channels = Object.keys(config.channels);
  const refuseUnless = (known: readonly string[], what: string, path: Path, name: string | undefined) => {
    if (name !== undefined && !known.includes(name))
      refuse(path, `names ${what} ${notAmong(known, name, `${what.slice(2)}s`)}`);
  };

  const { type } = config.store;
  const install = built.missingPackages?.([type]);
  if (!built.stores.includes(type)) {
    refuse(["store", "type"], `is \`${type}\`, which this version does not have yet: use ${listed(built.stores)}.`);
  } else if (install !== undefined) {
    refuse(["store", "type"], `is \`${type}\`, whose driver is not installed. Run: ${install}`);
  } else if (config.store.type === "postgres" && [config.store.url].flat().some((url) => FOREIGN.test(url))) {
    refuse(["store", "url"], "must be the address of a PostgreSQL database, which begins with `postgres://`.");
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
    const message = `is missing. There are several agents (${listed(agents)}): say which one answers a request that names none, for example \`gateway: { defaultAgent: ${JSON.stringify(agents[0])} }\`.`;
    refuse(["gateway", "defaultAgent"], message, "key");
  }
  refuseUnless(channels, "a channel", ["gateway", "announceTo"], announceTo);
}

/** The rest of a sentence about a name that is not among those that are configured in a section. */
export function notAmong(known: readonly string[], name: string, section: string): string {
  const none = `there is none yet: add it to \`${section}\`.`;
  return `that is not configured; ${known.length === 0 ? none : meantOrListed(known, name)}`;
}

/** The name that was probably meant, or those that there are. */
export function meantOrListed(known: readonly string[], name: string): string {
  const meant = nearest(name, known);
  return meant ? `did you mean \`${meant}\`?` : `there ${known.length === 1 ? "is" : "are"} ${listed(known)}.`;
}

export const listed = (names: readonly string[]): string => names.map((name) => `\`${name}\``).join(", ");
