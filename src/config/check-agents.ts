import { readdir } from "node:fs/promises";
import type { Program, ProgramFlaw } from "#kit/programs/program.ts";
import { type CheckedConfig, skillDirOf } from "./config.ts";
import { besideFile, unreadable } from "./files.ts";
import { type Findings, listed, meantOrListed, notAmong, type Path, type Report } from "./problems.ts";

/** The stores and backends of this build; the schema also has others. */
export type Built = {
  stores: readonly string[];
  backends: readonly string[];
  /** The command that installs the missing packages of these kinds; undefined if all are installed. */
  missingPackages?: (kinds: readonly string[]) => string | undefined;
  /** The reason why a program cannot be started; undefined if it can. */
  programFlaw?: (program: Program) => ProgramFlaw | undefined;
  /** The faults of params for a skill in these folders, with their places in the params. */
  paramsFaults?: (dirs: readonly string[], skillId: string, params: object) => Promise<ParamsFault[]>;
};
type ParamsFault = { path: Path; message: string };

/** An address with a scheme other than PostgreSQL's. */
const FOREIGN = /^(?!(?:postgres|postgresql):)[a-z][a-z\d+.-]*:\/\//i;

/** Checks the store, that the default agent, the default channel and the agents of the MCP server exist, and that its packages are installed. */
export function checkNames({ store, gateway, ...config }: CheckedConfig, built: Built, { refuse }: Findings): void {
  const { type } = store;
  const install = built.missingPackages?.([type]);
  if (!built.stores.includes(type)) {
    refuse(["store", "type"], `is \`${type}\`, which this version does not support: use ${listed(built.stores)}.`);
  } else if (install !== undefined) {
    refuse(["store", "type"], `is \`${type}\`, whose driver is not installed. Run: ${install}`);
  } else if (store.type === "postgres" && [store.url].flat().some((url) => FOREIGN.test(url))) {
    refuse(["store", "url"], "must be the address of a PostgreSQL database, which begins with `postgres://`.");
  }

  const { defaultAgent, announceTo, mcp } = gateway;
  const [agents, channels] = [Object.keys(config.agents), Object.keys(config.channels)];
  if (defaultAgent !== undefined && !agents.includes(defaultAgent))
    refuse(["gateway", "defaultAgent"], `names an agent ${notAmong(agents, defaultAgent, "agents")}`);
  if (defaultAgent === undefined && agents.length > 1) {
    const message = `is missing. There are several agents (${listed(agents)}): name the one for requests without an agent, for example \`gateway: { defaultAgent: ${JSON.stringify(agents[0])} }\`.`;
    refuse(["gateway", "defaultAgent"], message, "key");
  }
  if (announceTo !== undefined && !channels.includes(announceTo))
    refuse(["gateway", "announceTo"], `names a channel ${notAmong(channels, announceTo, "channels")}`);
  for (const [index, agent] of (mcp.agents ?? []).entries())
    if (!agents.includes(agent))
      refuse(["gateway", "mcp", "agents", index], `names an agent ${notAmong(agents, agent, "agents")}`);
  const forMcp = mcp.enabled ? built.missingPackages?.(["mcp"]) : undefined;
  if (forMcp !== undefined)
    refuse(["gateway", "mcp", "enabled"], `is true, but needs packages that are not installed. Run: ${forMcp}`);
}

/** Checks that the agents of keys and tokens exist, and that only keys whose only scope is `chat` are limited to agents. */
export function checkLimits({ gateway, agents }: CheckedConfig, { refuse }: Findings): void {
  const known = Object.keys(agents);
  const check = (path: Path, names: readonly string[] = []) => {
    for (const [index, name] of names.entries())
      if (!known.includes(name))
        refuse([...path, "agents", index], `names an agent ${notAmong(known, name, "agents")}`);
  };
  for (const [index, key] of gateway.rest.auth.keys.entries()) {
    const path = ["gateway", "rest", "auth", "keys", index];
    if (key.agents && key.scopes.includes("admin"))
      refuse(
        [...path, "agents"],
        "is only for keys whose only scope is `chat`: a key with the scope `admin` reaches every agent.",
      );
    check(path, key.agents);
  }
  for (const [index, token] of gateway.rpc.auth.tokens.entries())
    check(["gateway", "rpc", "auth", "tokens", index], token.agents);
}

type Place = { agent: CheckedConfig["agents"][string]; at: Path; config: CheckedConfig; refuse: Report };

/** Sections that belong to one backend each. */
const EXAMPLES = {
  http: `http: { url: "https://agent.example.com/turns" }`,
  a2a: `a2a: { url: "https://agent.example.com" }`,
  command: `command: { run: ["python3", "./agent.py"] }`,
  acp: `acp: { run: ["its-program", "--acp"] }`,
};
const SECTIONS = Object.keys(EXAMPLES) as (keyof typeof EXAMPLES)[];
const MODELS = `models: { fast: { provider: "openai", model: "gpt-5-mini" } }`;

/** Checks agents beyond the schema: they have exactly the sections that their backend uses, and the names in them exist. */
export function checkAgents(config: CheckedConfig, built: Built, { refuse }: Findings): void {
  for (const [name, agent] of Object.entries(config.agents)) {
    const place: Place = { agent, at: ["agents", name], config, refuse };
    checkBackend(place, built);
    if (agent.instructions !== "" && agent.instructionsFile !== undefined)
      refuse([...place.at, "instructionsFile"], "is given together with `instructions`: keep one of them.");
    if (agent.backend === "model") checkModels(place);
    else checkNoModels(place);
  }
}

function checkBackend({ agent, at, config, refuse }: Place, { backends, missingPackages }: Built): void {
  const { backend, echo, models, tools } = agent;
  if (!backends.includes(backend))
    refuse([...at, "backend"], `is \`${backend}\`, which this version does not support: use ${listed(backends)}.`);
  for (const section of SECTIONS) {
    const path = [...at, section];
    if (section === backend && agent[section] === undefined)
      refuse(path, `is missing. It says how to reach the agent, for example \`${EXAMPLES[section]}\`.`, "key");
    if (section !== backend && agent[section] !== undefined) refuse(path, otherBackend(section, backend));
  }
  const isTuned = echo.delayMs > 0 || echo.chunks > 1 || echo.failTimes > 0 || echo.fail !== undefined;
  if (backend !== "echo" && isTuned) refuse([...at, "echo"], otherBackend("echo", backend));

  const providers = Array.isArray(models) ? [] : Object.values(models).map(({ provider }) => provider);
  const kinds = providers
    .flatMap((provider) => config.providers[provider] ?? [])
    .map((provider) => (provider.type === "ai-sdk" ? provider.package : provider.type));
  const forTools = tools.length > 0 ? missingPackages?.(["tools"]) : undefined;
  if (forTools !== undefined)
    refuse([...at, "tools"], `names tool servers, which need packages that are not installed. Run: ${forTools}`);
  const install = missingPackages?.([backend, ...kinds]);
  if (install !== undefined)
    refuse([...at, "backend"], `is \`${backend}\`, which needs packages that are not installed. Run: ${install}`);
}

function otherBackend(wanted: string, backend: string): string {
  return `is for the backend \`${wanted}\`, but this agent's is \`${backend}\`: remove it, or change the backend.`;
}

/** Checks that a `model` agent maps each name of a model to a provider and a model. Callers can choose only these names. */
function checkModels({ agent, at, config, refuse }: Place): void {
  const { models, model, fallbacks, summaryModel, tools } = agent;
  if (Array.isArray(models) || Object.keys(models).length === 0) {
    const isMissing = !Array.isArray(models) || models.length === 0;
    const message = `${isMissing ? "is missing. It says" : "must say"} which model each name stands for, for example \`${MODELS}\`.`;
    refuse([...at, "models"], message, isMissing ? "key" : "value");
    return;
  }
  const providers = Object.keys(config.providers);
  for (const [name, { provider }] of Object.entries(models)) {
    if (!providers.includes(provider))
      refuse([...at, "models", name, "provider"], `names a provider ${notAmong(providers, provider, "providers")}`);
  }
  const names = Object.keys(models);
  const checkModel = (path: Path, name: string | undefined) => {
    if (name === undefined || names.includes(name)) return;
    const message = `names a model that is not among this agent's \`models\`; ${meantOrListed(names, name)}`;
    refuse([...at, ...path], message);
  };
  checkModel(["model"], model);
  checkModel(["summaryModel"], summaryModel);
  for (const [index, name] of fallbacks.entries()) checkModel(["fallbacks", index], name);
  const servers = Object.keys(config.tools);
  for (const [index, tool] of tools.entries()) {
    const server = tool.slice(0, tool.indexOf("/"));
    if (!servers.includes(server))
      refuse([...at, "tools", index], `names a tool server ${notAmong(servers, server, "tools")}`);
  }
}

function checkNoModels({ agent, at, refuse }: Place): void {
  const { backend, models, fallbacks, summaryModel, tools } = agent;
  if (!Array.isArray(models)) {
    const message = `must be a list of names for the backend \`${backend}\`, for example \`["fast"]\`: only the backend \`model\` says what they stand for.`;
    refuse([...at, "models"], message);
  }
  const given = { fallbacks: fallbacks.length > 0, summaryModel: summaryModel !== undefined, tools: tools.length > 0 };
  for (const [key, isGiven] of Object.entries(given)) if (isGiven) refuse([...at, key], otherBackend("model", backend));
}

/** Checks that the programs of agents and tool servers exist. Otherwise only the first turn would fail. */
export function checkPrograms(
  { agents, tools }: CheckedConfig,
  file: string | null,
  { programFlaw }: Built,
  { refuse }: Findings,
): void {
  const check = (path: Path, program: { run: string[]; cwd?: string; env: Record<string, string> } | undefined) => {
    const flaw = program && programFlaw?.({ ...program, cwd: besideFile(file, program.cwd ?? ".") });
    if (flaw) refuse([...path, flaw.at], `${flaw.message}.`);
  };
  for (const [name, { backend, ...agent }] of Object.entries(agents)) {
    if (backend === "command" || backend === "acp") check(["agents", name, backend], agent[backend]);
  }
  for (const [name, server] of Object.entries(tools)) if (server.type === "stdio") check(["tools", name], server);
}

/** Checks that the skill folders are readable, and warns of skills that they do not have. Returns the names of all skills; undefined if a folder is unreadable. */
export async function checkSkills(
  { skills, agents }: CheckedConfig,
  file: string | null,
  { refuse, warn }: Findings,
): Promise<readonly string[] | undefined> {
  let isUnread = false;
  const namesIn = async (dir: (typeof skills.dirs)[number], index: number): Promise<string[]> => {
    const { path, optional } = skillDirOf(dir);
    const at: Path = ["skills", "dirs", index, ...(typeof dir === "string" ? [] : ["path"])];
    try {
      const entries = await readdir(besideFile(file, path), { withFileTypes: true });
      return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
    } catch (error) {
      const isAbsent = (error as NodeJS.ErrnoException).code === "ENOENT";
      if (isAbsent && optional) return [];
      const form = isAbsent ? ` If it may be absent, write \`{ path: ${JSON.stringify(path)}, optional: true }\`.` : "";
      refuse(at, `names the folder ${unreadable(path, error)}${form}`);
      isUnread = true;
      return [];
    }
  };
  const names = (await Promise.all(skills.dirs.map(namesIn))).flat();
  if (isUnread) return undefined;
  for (const [agent, { skills: wanted }] of Object.entries(agents)) {
    for (const [index, skill] of wanted.entries()) {
      if (skill === "*" || names.includes(skill)) continue;
      const hint = names.length === 0 ? "there is none yet." : meantOrListed(names, skill);
      warn(["agents", agent, "skills", index], `names a skill that no folder of \`skills.dirs\` has; ${hint}`);
    }
  }
  return names;
}
