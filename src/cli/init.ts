import { randomBytes } from "node:crypto";
import { appendFileSync, existsSync, lstatSync, mkdirSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { readRegularFileSync } from "#kit/regular-file.ts";
import { writeNew } from "./diagnostics.ts";
import { CliError, INTERRUPTED, UsageError } from "./failures.ts";
import { STARTING_POINTS, type StartingPointName } from "./starting-points.ts";
import { isTerminal } from "./terminal.ts";
import { asTyped } from "./typed.ts";
import { fileFault } from "./values.ts";

export type InitOptions = {
  template?: StartingPointName;
  agent?: string;
  backend?: "echo" | "openai" | "anthropic" | "openai-compatible" | "http" | "command";
  model?: string;
  target?: string;
  port?: string;
  store?: "memory" | "sqlite";
  yes?: boolean;
};

type Answers = Required<Pick<InitOptions, "template" | "agent" | "backend" | "port" | "store">> &
  Pick<InitOptions, "model" | "target">;
type Backend = Answers["backend"];

const BACKENDS: Record<
  Backend,
  { label: string; hint: string; model?: string; target?: { message: string; example: string }; secret?: string }
> = {
  echo: { label: "Nothing yet", hint: "repeats each message; good for trying everything else" },
  openai: { label: "A model of OpenAI", hint: "needs an API key", model: "gpt-5-mini", secret: "OPENAI_API_KEY" },
  anthropic: {
    label: "A model of Anthropic",
    hint: "needs an API key",
    model: "claude-sonnet-4-5",
    secret: "ANTHROPIC_API_KEY",
  },
  "openai-compatible": {
    label: "A model behind another address",
    hint: "Ollama, vLLM, LM Studio, OpenRouter, …",
    model: "llama3.2",
    target: { message: "Its address, up to and with /v1", example: "http://127.0.0.1:11434/v1" },
  },
  http: {
    label: "A web service of yours",
    hint: "in any language",
    target: { message: "Its address", example: "http://127.0.0.1:8000/turn" },
  },
  command: {
    label: "A program of yours",
    hint: "runs once for each turn",
    target: { message: "Its command line", example: "python3 agent.py" },
  },
};

const ECHO_CHANGE =
  "The agent repeats its message: choose another backend in gateway.json5, such as a model (docs/agents.md).";

const CHOOSE = "choose another folder: agent-gateway init FOLDER";

/** Writes a configuration and its secrets into a folder, and prints the next steps. */
export async function init(folder: string, options: InitOptions): Promise<string> {
  const files = filesOf(folder);
  refuseTaken([files.config, files.secrets]);
  check(options);
  const answers =
    options.yes || !(process.stdin.isTTY && isTerminal(process.stdout)) ? defaults(options) : await ask(options);
  check(answers);
  const { sample } = STARTING_POINTS[answers.template];
  const samplePath = sample && join(folder, sample.name);
  if (samplePath) refuseTaken([samplePath]);
  makeFolder(folder);
  writeNew(files.secrets, secretsOf(answers), 0o600, CHOOSE);
  let ignored: string | undefined;
  try {
    ignored = ignoreSecrets(folder);
    if (sample && samplePath) writeNew(samplePath, sample.text, 0o644, CHOOSE);
    writeNew(files.config, configOf(answers), 0o644, CHOOSE);
  } catch (error) {
    // The next attempt would refuse a folder with these files.
    for (const written of [files.secrets, samplePath]) if (written) rmSync(written, { force: true });
    throw error;
  }
  return nextSteps(folder, answers, ignored);
}

function filesOf(folder: string) {
  return { config: join(folder, "gateway.json5"), secrets: join(folder, "gateway.env") };
}

function refuseTaken(files: readonly string[]): void {
  for (const file of files)
    if (isTaken(file)) throw new CliError(`${file} already exists, and nothing is overwritten.`, 1, CHOOSE);
}

function nextSteps(folder: string, { template, agent, backend }: Answers, ignored: string | undefined): string {
  const { config, secrets } = filesOf(folder);
  const { sample, trial, changes } = STARTING_POINTS[template];
  const { secret } = BACKENDS[backend];
  // npx finds the program only in its project, and the folder may be outside.
  const isNpx = asTyped("agent-gateway ").startsWith("npx");
  const of = isNpx && folder !== "." ? ` --config ${config}` : "";
  const here = isNpx || folder === "." ? "" : `cd ${folder}\n  `;
  const samplePath = sample && (isNpx ? join(folder, sample.name) : sample.name);
  const command = trial?.command(samplePath ?? "") ?? `send ${agent} 'Good morning'`;
  const toChange = backend === "echo" ? [...changes, ECHO_CHANGE] : changes;
  return [
    `${config} and ${secrets} are written.${ignored ? ` ${ignored} keeps the secrets out of git.` : ""}`,
    ...(secret ? [`Put your API key into ${secrets}, after ${secret}=.`] : []),
    asTyped(
      `Next:\n  ${here}agent-gateway serve${of}\nand in another terminal${trial ? `, ${trial.title}` : ""}:\n  ${here}agent-gateway ${command}${of}\n  agent-gateway open${of}`,
    ),
    ...(trial ? ["Then, for real use:", ...toChange.map((change) => `- ${change}`)] : []),
  ].join("\n");
}

/** True if the name is in use, even by a link to a missing file. */
function isTaken(file: string): boolean {
  try {
    lstatSync(file);
    return true;
  } catch {
    return false;
  }
}

/** Creates a folder and its parents one by one: below /proc, `mkdirSync` with `recursive` never returns. */
function makeFolder(folder: string): void {
  const missing: string[] = [];
  for (let at = resolve(folder); !existsSync(at); at = dirname(at)) missing.unshift(at);
  try {
    for (const each of missing) mkdirSync(each);
  } catch (error) {
    throw new CliError(`The folder ${folder} cannot be created: ${fileFault(error)}.`, 1, CHOOSE);
  }
  if (!statSync(folder).isDirectory()) throw new CliError(`${folder} is not a folder.`, 1, CHOOSE);
}

function defaults({
  template = "empty",
  agent = "main",
  backend = "echo",
  port = "18789",
  store = "sqlite",
  model,
  target,
}: InitOptions): Answers {
  if (BACKENDS[backend].target && !target)
    throw new UsageError(`The backend ${backend} needs --target, such as '${BACKENDS[backend].target.example}'.`);
  return { template, agent, backend, port, store, model: model ?? BACKENDS[backend].model, ...(target && { target }) };
}

async function ask(given: InitOptions): Promise<Answers> {
  const { intro, isCancel, select, text, outro } = await import("@clack/prompts");
  const answered = async <Value>(asking: Promise<Value>): Promise<Exclude<Value, symbol>> => {
    const value = await asking;
    if (isCancel(value)) throw new CliError("Nothing was written.", INTERRUPTED);
    return value as Exclude<Value, symbol>;
  };
  const line = (message: string, value: string, given?: string, fault?: (typed: string) => string | undefined) =>
    given ??
    answered(
      text({
        message,
        placeholder: value,
        defaultValue: value,
        // Nothing typed means the default.
        validate: (typed) => (typed ? fault?.(typed) : undefined),
      }),
    );

  intro("A configuration to begin with");
  const points = Object.entries(STARTING_POINTS).map(([value, { label, hint }]) => ({
    value: value as StartingPointName,
    label,
    hint,
  }));
  const template = given.template ?? (await answered(select({ message: "Start from", options: points })));
  const agent = await line("What is the agent called?", "main", given.agent, nameFault);
  const choices = Object.entries(BACKENDS).map(([value, { label, hint }]) => ({
    value: value as Backend,
    label,
    hint,
  }));
  const backend = given.backend ?? (await answered(select({ message: "What answers for it?", options: choices })));
  const { model, target } = BACKENDS[backend];
  const chosen = model === undefined ? given.model : await line("Which model?", model, given.model);
  const place =
    target === undefined
      ? given.target
      : await line(target.message, target.example, given.target || undefined, (typed) => targetFault(backend, typed));
  const store =
    given.store ??
    (await answered(
      select({
        message: "Where does it keep what it knows?",
        options: [
          { value: "sqlite" as const, label: "In a file", hint: "outlives a restart" },
          { value: "memory" as const, label: "In memory", hint: "forgets at a restart" },
        ],
      }),
    ));
  const port = await line("Which port?", "18789", given.port, portFault);
  outro("Thank you");
  return { template, agent, backend, port, store, ...(chosen && { model: chosen }), ...(place && { target: place }) };
}

/** The faults of typed answers; undefined if there is none. */
function nameFault(agent: string): string | undefined {
  if (/^[a-z][a-z0-9-]*$/.test(agent)) return undefined;
  return `${agent} is not a valid name for an agent. Use small letters, digits and hyphens.`;
}
function portFault(port: string): string | undefined {
  return /^\d+$/.test(port) && Number(port) <= 65_535 ? undefined : `${port} is not a port.`;
}
function targetFault(backend: Backend, target: string | undefined): string | undefined {
  if ((backend !== "http" && backend !== "openai-compatible") || !target || /^https?:\/\//.test(target))
    return undefined;
  return `${target} is not an address. An address begins with http:// or https://.`;
}

function check({ agent = "main", port = "0", target, backend = "echo" }: InitOptions): void {
  const fault = nameFault(agent) ?? portFault(port) ?? targetFault(backend, target);
  if (fault !== undefined) throw new UsageError(fault);
}

function fresh(): string {
  return randomBytes(24).toString("base64url");
}

function secretsOf({ template, backend }: Answers): string {
  const ofTemplate = STARTING_POINTS[template].secrets.map((name) => `${name}=${fresh()}\n`).join("");
  return `# The secrets of gateway.json5, read by agent-gateway where they are not set otherwise. Keep this file to yourself.
CONSOLE_TOKEN=${fresh()}
REST_API_KEY=${fresh()}
RPC_TOKEN=${fresh()}
WEBHOOK_TOKEN=${fresh()}
${ofTemplate}${BACKENDS[backend].secret ? `${BACKENDS[backend].secret}=\n` : ""}`;
}

function configOf(answers: Answers): string {
  return `// The gateway's configuration. Every key: docs/configuration.md. Check it with: agent-gateway check
// \${NAME} is a variable of the environment, or of gateway.env beside this file.
{
  gateway: {
    host: "127.0.0.1",                       // other machines need TLS: docs/deploying.md
    port: ${Number(answers.port)},
    console: { token: "\${CONSOLE_TOKEN}" },  // valid for the console and every surface except webhooks
    rest: { auth: { keys: [{ name: "first", key: "\${REST_API_KEY}", scopes: ["chat"] }] } },
    rpc: { auth: { tokens: [{ name: "ops", token: "\${RPC_TOKEN}", permissions: ["*"] }] } },
  },
${webhooksOf(answers)}
${agentOf(answers)}${STARTING_POINTS[answers.template].sections ?? ""}
  store: ${answers.store === "memory" ? '{ type: "memory" },                // forgets at a restart' : '{ type: "sqlite", path: "./gateway.db" },'}
}
`;
}

function webhooksOf({ template }: Answers): string {
  const { mappings } = STARTING_POINTS[template];
  return mappings === undefined
    ? `  webhooks: { token: "\${WEBHOOK_TOKEN}" },   // mappings turn payloads into turns: docs/webhooks.md`
    : `  webhooks: {
    token: "\${WEBHOOK_TOKEN}",
    mappings: {                              // they turn payloads into turns: docs/webhooks.md${mappings}
    },
  },`;
}

/** The agent, and the provider of its model, in the file's form. */
function agentOf({ template, agent, backend, model, target }: Answers): string {
  const providers: Partial<Record<Backend, string>> = {
    openai: `{ type: "openai", apiKey: "\${OPENAI_API_KEY}" }`,
    anthropic: `{ type: "anthropic", apiKey: "\${ANTHROPIC_API_KEY}" }`,
    "openai-compatible": `{ type: "openai-compatible", baseUrl: ${JSON.stringify(target)} }`,
  };
  const provider = providers[backend];
  const body =
    provider !== undefined
      ? `backend: "model",
      instructions: ${JSON.stringify(STARTING_POINTS[template].instructions)},
      models: { default: { provider: "models", model: ${JSON.stringify(model)}, contextTokens: 128000 } },`
      : backend === "http"
        ? `backend: "http",
      http: { url: ${JSON.stringify(target)} },            // what it is sent: specs/agent-http.yaml`
        : backend === "command"
          ? `backend: "command",
      command: { run: ${JSON.stringify((target ?? "").split(/\s+/))} },`
          : `backend: "echo",                       // repeats each message; others: docs/agents.md`;
  return `${provider === undefined ? "" : `  providers: { models: ${provider} },\n`}  agents: {
    ${/^[a-z]+$/.test(agent) ? agent : JSON.stringify(agent)}: {
      ${body}
    },
  },`;
}

/** Excludes the secrets and the store from git, also for a repository that is created later. Returns the file that it changed, if any. */
function ignoreSecrets(folder: string): string | undefined {
  const file = join(folder, ".gitignore");
  try {
    const written = existsSync(file) ? readRegularFileSync(file, 2 ** 20).toString() : "";
    const present = written.split(/\r?\n/);
    const missing = ["gateway.env", "gateway.db*"].filter((name) => !present.includes(name));
    if (missing.length === 0) return undefined;
    appendFileSync(file, `${written === "" || written.endsWith("\n") ? "" : "\n"}${missing.join("\n")}\n`);
    return file;
  } catch (error) {
    throw new CliError(`${file} cannot be written: ${fileFault(error)}.`, 1, CHOOSE);
  }
}
