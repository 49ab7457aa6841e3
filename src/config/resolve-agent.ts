import { resolve as absolute } from "node:path";
import type { AgentConfig, ModelConfig, Program, ProviderConfig, ToolServerConfig } from "./config.ts";
import type { CheckedConfig } from "./conform.ts";
import { bytes, milliseconds } from "./units.ts";

type CheckedAgent = CheckedConfig["agents"][string];
type CheckedModel = Exclude<CheckedAgent["models"], readonly string[]>[string];

/** A checked agent in the form that the gateway uses. Paths begin at `from`. */
export const resolveAgent = (agent: CheckedAgent, from: string, instructions = agent.instructions): AgentConfig => {
  const { every } = agent.heartbeat;
  const { timeouts, http, a2a, command, acp, models } = agent;
  const table = Array.isArray(models) ? {} : mapEach(models as Record<string, CheckedModel>, resolveModel);
  return {
    backend: agent.backend,
    description: agent.description,
    instructions,
    model: agent.model,
    models: Array.isArray(models) ? models : Object.keys(models),
    modelTable: table,
    fallbacks: agent.fallbacks,
    summaryModel: agent.summaryModel,
    skills: agent.skills,
    tools: agent.tools,
    steps: agent.steps,
    heartbeat: { every: every === "off" ? undefined : milliseconds(every) },
    concurrency: agent.concurrency,
    deadline: milliseconds(agent.deadline),
    timeouts: {
      connect: milliseconds(timeouts.connect),
      firstByte: milliseconds(timeouts.firstByte),
      silence: milliseconds(timeouts.silence),
    },
    echo: { ...agent.echo, fail: agent.echo.fail },
    http: http && { url: http.url, headers: http.headers, secret: http.secret, history: http.history },
    a2a: a2a && { url: a2a.url, headers: a2a.headers },
    command: command && { ...programOf(command, from), output: command.output },
    acp: acp && {
      ...programOf(acp, from),
      permissions: acp.permissions,
      idle: milliseconds(acp.idle),
      processes: acp.processes,
    },
  };
};

const resolveModel = ({ provider, model, ...limits }: CheckedModel): ModelConfig => ({
  provider,
  model,
  contextTokens: limits.contextTokens,
  maxOutputTokens: limits.maxOutputTokens,
  temperature: limits.temperature,
  options: limits.options,
  price: limits.price && { ...limits.price, cachedInput: limits.price.cachedInput },
});

export const resolveProvider = (provider: CheckedConfig["providers"][string]): ProviderConfig => ({
  type: provider.type,
  package: provider.type === "ai-sdk" ? provider.package : undefined,
  settings: provider.type === "ai-sdk" ? provider.settings : undefined,
  apiKey: provider.apiKey,
  baseUrl: provider.baseUrl,
  headers: provider.headers,
});

export const resolveToolServer = (server: CheckedConfig["tools"][string], from: string): ToolServerConfig => {
  const limits = { callTimeout: milliseconds(server.callTimeout), maxOutput: bytes(server.maxOutput) };
  return server.type === "stdio"
    ? { type: "stdio", ...programOf(server, from), ...limits }
    : { type: "http", url: server.url, headers: server.headers, ...limits };
};

type CheckedProgram = { run: readonly string[]; cwd?: string | undefined; env: Readonly<Record<string, string>> };

const programOf = ({ run, cwd, env }: CheckedProgram, from: string): Program => ({
  run,
  cwd: absolute(from, cwd ?? "."),
  env,
});

const mapEach = <T, U>(record: Readonly<Record<string, T>>, change: (value: T) => U): Record<string, U> =>
  Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
