import { type Built, meantOrListed, notAmong } from "./check.ts";
import type { CheckedConfig } from "./conform.ts";
import { besideFile } from "./files.ts";
import type { Findings, Path, Report } from "./problems.ts";

type CheckedAgent = CheckedConfig["agents"][string];
type Place = { agent: CheckedAgent; at: Path; config: CheckedConfig; refuse: Report };

/** Sections that belong to one backend each. */
const SECTIONS = ["http", "a2a", "command", "acp"] as const;
const EXAMPLES = {
  http: `http: { url: "https://agent.example.com/turns" }`,
  a2a: `a2a: { url: "https://agent.example.com" }`,
  command: `command: { run: ["python3", "./agent.py"] }`,
  acp: `acp: { run: ["its-program", "--acp"] }`,
};
const MODELS = `models: { fast: { provider: "openai", model: "gpt-5-mini" } }`;

/** Checks of agents beyond the schema: they have all that their backend needs, nothing that it does not use, and their names exist. */
export function checkAgents(config: CheckedConfig, built: Built, { refuse }: Findings): void {
  for (const [name, agent] of Object.entries(config.agents)) {
    const place: Place = { agent, at: ["agents", name], config, refuse };
    checkSections(place);
    checkInstructions(place);
    if (agent.backend === "model") checkModels(place);
    else checkOthers(place);
    checkPackages(place, built);
  }
}

function checkSections({ agent, at, refuse }: Place): void {
  const { backend, echo } = agent;
  for (const section of SECTIONS) {
    if (section === backend && agent[section] === undefined)
      refuse(
        [...at, section],
        `is missing. It says how to reach the agent, for example \`${EXAMPLES[section]}\`.`,
        "key",
      );
    if (section !== backend && agent[section] !== undefined) refuse([...at, section], otherBackend(section, backend));
  }
  const isTuned = echo.delayMs > 0 || echo.chunks > 1 || echo.failTimes > 0 || echo.fail !== undefined;
  if (backend !== "echo" && isTuned) refuse([...at, "echo"], otherBackend("echo", backend));
}

const otherBackend = (wanted: string, backend: string): string =>
  `is for the backend \`${wanted}\`, but this agent's is \`${backend}\`: remove it, or change the backend.`;

function checkInstructions({ agent, at, refuse }: Place): void {
  if (agent.instructions !== "" && agent.instructionsFile !== undefined)
    refuse([...at, "instructionsFile"], "is given together with `instructions`: keep one of them.");
}

/** A `model` agent says what each name of a model stands for; nothing else may be asked for. */
function checkModels({ agent, at, config, refuse }: Place): void {
  const { models, model, fallbacks, summaryModel, tools } = agent;
  const names = Array.isArray(models) ? [] : Object.keys(models);
  if (Array.isArray(models) || names.length === 0) {
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
  const knows = (path: Path, name: string | undefined) => {
    if (name !== undefined && !names.includes(name))
      refuse(
        [...at, ...path],
        `names a model that is not among this agent's \`models\`; ${meantOrListed(names, name)}`,
      );
  };
  knows(["model"], model);
  knows(["summaryModel"], summaryModel);
  for (const [index, name] of fallbacks.entries()) knows(["fallbacks", index], name);
  const servers = Object.keys(config.tools);
  for (const [index, tool] of tools.entries()) {
    const server = tool.slice(0, tool.indexOf("/"));
    if (!servers.includes(server))
      refuse([...at, "tools", index], `names a server of tools ${notAmong(servers, server, "tools")}`);
  }
}

function checkOthers({ agent, at, refuse }: Place): void {
  const only = (key: string) => refuse([...at, key], otherBackend("model", agent.backend));
  if (!Array.isArray(agent.models))
    refuse(
      [...at, "models"],
      `must be a list of names for the backend \`${agent.backend}\`, for example \`["fast"]\`: only the backend \`model\` says what they stand for.`,
    );
  if (agent.fallbacks.length > 0) only("fallbacks");
  if (agent.summaryModel !== undefined) only("summaryModel");
  if (agent.tools.length > 0) only("tools");
}

function checkPackages({ agent, at, config, refuse }: Place, { missingPackages }: Built): void {
  if (!missingPackages) return;
  const models = Array.isArray(agent.models) ? [] : Object.values(agent.models);
  const providers = models.flatMap(({ provider }) => config.providers[provider] ?? []);
  const kinds = providers.map((provider) => (provider.type === "ai-sdk" ? provider.package : provider.type));
  const install = missingPackages([agent.backend, ...kinds, ...(agent.tools.length > 0 ? ["tools"] : [])]);
  if (install !== undefined)
    refuse([...at, "backend"], `is \`${agent.backend}\`, which needs packages that are not installed. Run: ${install}`);
}

/** The programs of agents and of servers of tools must exist: the first turn would tell too late. */
export function checkPrograms(
  config: CheckedConfig,
  file: string | null,
  { programFlaw }: Built,
  { refuse }: Findings,
): void {
  const check = (path: string[], program: { run: readonly string[]; cwd?: string; env: Record<string, string> }) => {
    const flaw = programFlaw?.({ ...program, cwd: besideFile(file, program.cwd ?? ".") });
    if (flaw) refuse([...path, flaw.at], `${flaw.message}.`);
  };
  for (const [name, agent] of Object.entries(config.agents)) {
    const { backend } = agent;
    if (backend !== "command" && backend !== "acp") continue;
    const program = agent[backend];
    if (program) check(["agents", name, backend], program);
  }
  for (const [name, server] of Object.entries(config.tools)) {
    if (server.type === "stdio") check(["tools", name], server);
  }
}
