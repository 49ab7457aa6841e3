import type { EffectiveValue } from "./effective.ts";

/** The configuration as the gateway uses it: whole, checked, frozen; spans in milliseconds, sizes in bytes, tokens as hashes. */
export type Config = {
  gateway: {
    /** At least one. `gateway.host` and `gateway.port` make the only one where the file lists none. */
    listeners: readonly Listener[];
    defaultAgent: string;
    concurrency: number;
    connectionsPerAddress: number;
    trustedProxies: readonly string[];
    clearTextFrom: readonly string[];
    allowedOrigins: readonly string[];
    announceTo: string | undefined;
    rest: { enabled: boolean; auth: { keys: readonly RestKey[] }; rateLimit: RateLimit | undefined };
    /** Served where REST is. */
    openai: { enabled: boolean };
    rpc: {
      enabled: boolean;
      auth: { tokens: readonly RpcToken[] };
      rateLimit: RateLimit | undefined;
      socketsPerAddress: number;
    };
    console: { enabled: boolean; token: Hash | undefined };
  };
  webhooks: {
    enabled: boolean;
    token: readonly WebhookToken[];
    path: string;
    /** Undefined lets any address in. */
    allowedIps: readonly string[] | undefined;
    rateLimit: RateLimit | undefined;
    /** In the order in which they are tried. */
    mappings: Readonly<Record<string, Mapping>>;
  };
  /** In the order of the file. */
  agents: Readonly<Record<string, AgentConfig>>;
  providers: Readonly<Record<string, ProviderConfig>>;
  tools: Readonly<Record<string, ToolServerConfig>>;
  skills: { dirs: readonly SkillDir[] };
  channels: Readonly<Record<string, ChannelConfig>>;
  store: StoreConfig;
  sessions: { retention: number; webhookRetention: number; eventRetention: number; compactAt: number };
  limits: {
    turnsPerSession: number;
    turns: number;
    events: number;
    messagesPerSession: number;
    storeBytes: number;
    webhookBody: number;
    restBody: number;
    rpcBody: number;
  };
  recorder: { entries: number; bytes: number; bodies: boolean };
};

/** `path` is absolute. An optional folder need not be there. */
export type SkillDir = { path: string; optional: boolean };

export type SurfaceName = "rest" | "rpc" | "webhooks" | "console" | "docs" | "metrics";
export type Listener = { host: string; port: number; tls: Tls | undefined; surfaces: readonly SurfaceName[] };

/** The files' contents, PEM, read together: a certificate never meets the key of another. */
export type Tls = { cert: string; key: string };

/** SHA-256 of a token in hexadecimal digits. The token itself is not kept. */
export type Hash = string;
export type RestKey = {
  name: string;
  hash: Hash;
  scopes: readonly ("chat" | "admin")[];
  expiresAt?: string | undefined;
};
export type RpcToken = { name: string; hash: Hash; permissions: readonly string[] };
/** Several may have one name: a new one and an old one while they change. */
export type WebhookToken = { name: string; hash: Hash; since: string | undefined };
export type RateLimit = { maxRequests: number; windowMs: number };

export type Mapping = {
  /** Lookup path → the texts, any of which it may have. */
  match: Readonly<Record<string, readonly string[]>>;
  message: string;
  agent: string;
  session: string | undefined;
  model: string | undefined;
  channel: string | undefined;
  delivery: "none" | "announce";
  verify: Verify | undefined;
};

/** Any of the secrets is good: a new one and an old one while they change. */
export type Verify = { type: "standard-webhooks" | "github" | "stripe" | "slack"; secret: readonly string[] };

/** The address of a Slack channel is its secret. */
export type ChannelConfig = { type: "webhook"; url: string; secret: string } | { type: "slack"; url: string };

export type BackendName = "echo" | "model" | "a2a" | "http" | "command" | "acp";

export type AgentConfig = {
  backend: BackendName;
  description: string;
  instructions: string;
  model: string | undefined;
  models: readonly string[];
  /** The models that the names of `models` stand for; only a `model` backend has them. */
  modelTable: Readonly<Record<string, ModelConfig>>;
  fallbacks: readonly string[];
  summaryModel: string | undefined;
  skills: readonly string[];
  /** As `server/tool` or `server/*`. */
  tools: readonly string[];
  steps: number;
  /** Undefined where it is off. */
  heartbeat: { every: number | undefined };
  concurrency: number;
  deadline: number;
  timeouts: { connect: number; firstByte: number; silence: number };
  echo: { delayMs: number; chunks: number; failTimes: number; fail: string | undefined };
  http: { url: string; headers: Headers; secret: string | undefined; history: boolean } | undefined;
  a2a: { url: string; headers: Headers } | undefined;
  command: (Program & { output: "text" | "json-lines" }) | undefined;
  acp: (Program & { permissions: "deny" | "allow"; idle: number; processes: number }) | undefined;
};

type Headers = Readonly<Record<string, string>>;

/** A program of this machine. `cwd` is absolute; of the gateway's environment nothing but `env` and the bare necessities is passed on. */
export type Program = { run: readonly string[]; cwd: string; env: Readonly<Record<string, string>> };

export type ProviderConfig = {
  type: "openai" | "anthropic" | "google" | "openai-compatible" | "ai-sdk";
  /** Of the type `ai-sdk`: the package of its SDK, and what that is set up with beside the rest. */
  package: string | undefined;
  settings: Readonly<Record<string, unknown>> | undefined;
  apiKey: string | undefined;
  baseUrl: string | undefined;
  headers: Headers;
};

export type ModelConfig = {
  /** A key of `providers`. */
  provider: string;
  model: string;
  contextTokens: number | undefined;
  maxOutputTokens: number | undefined;
  temperature: number | undefined;
  options: Readonly<Record<string, unknown>> | undefined;
  /** For a million tokens. */
  price: { input: number; cachedInput: number | undefined; output: number } | undefined;
};

/** A server of tools. */
export type ToolServerConfig = (({ type: "stdio" } & Program) | { type: "http"; url: string; headers: Headers }) & {
  callTimeout: number;
  maxOutput: number;
};

export type StoreConfig =
  | { type: "memory" }
  | { type: "sqlite"; path: string }
  | { type: "postgres"; url: readonly string[] };

/** The secrets that were made for a start without a configuration. Shown once, on the terminal. */
export type TryOut = { restKey: string; rpcToken: string; webhookToken: string; consoleToken: string };

export type LoadedConfig = {
  config: Config;
  /** Null for a start without a configuration. */
  file: string | null;
  /** The files it was read from, itself and the certificates, each with what tells this version of it from another. */
  files: Readonly<Record<string, string>>;
  warnings: readonly string[];
  /** Its values as an operator may see them, with their origins, and when they were read. */
  values: readonly EffectiveValue[];
  loadedAt: number;
  tryOut: TryOut | null;
};
