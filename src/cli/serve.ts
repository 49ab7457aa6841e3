import { type LoadedConfig, loadConfig } from "#config/load.ts";
import { ConfigError } from "#config/problems.ts";
import { type ConfigWatch, watchConfig } from "#config/watch.ts";
import { BUILT, type Gateway, startGateway } from "#gateway/gateway.ts";
import { createLogger, type Logger } from "#observe/logger.ts";
import { version } from "../version.ts";
import { banner } from "./banner.ts";
import { meant, parseOptions, UsageError } from "./options.ts";

const HELP = `agent-gateway ${version}: REST, JSON-RPC and webhooks in front of conversational agents.

Usage: npm start -- [serve] [options]     runs the gateway
       npm start -- backup TO [options]   copies the SQLite store into a file, while a gateway works with it (backup --help)

  --config FILE  the configuration (default: $GATEWAY_CONFIG, else ./gateway.json5, else a try-out with an echo agent)
  --host HOST    the address to listen on; wins over $GATEWAY_HOST and the file
  --port PORT    the port to listen on; wins over $GATEWAY_PORT and the file (default: 18789)
  --version      print the version
  -h, --help     print this

Environment: LOG_LEVEL (debug, info, warn, error); LOG_FORMAT (json, pretty; by default pretty in a terminal, json elsewhere);
             NO_COLOR (no colours).
Signals: SIGHUP reads the configuration again; SIGTERM and SIGINT finish what runs and stop, a second one stops at once.
`;

const COMMANDS = ["serve", "backup"];

export type Served = { gateway: Gateway; logger: Logger; watch: ConfigWatch };

/** Runs the gateway as the command line says. Undefined when there was nothing to run. Throws nothing: it prints and sets the exit code. */
export const serve = async (args: readonly string[], env: NodeJS.ProcessEnv): Promise<Served | undefined> => {
  try {
    if (args[0] === "backup") {
      const { backup } = await import("./backup.ts");
      process.stdout.write(await backup(args.slice(1), env));
      return undefined;
    }
    const [first] = args;
    if (first !== undefined && first !== "serve" && !first.startsWith("-"))
      throw new UsageError(`There is no command ${first}.${meant(first, COMMANDS)} --help tells more.`);
    const options = readOptions(first === "serve" ? args.slice(1) : args);
    if (typeof options === "string") {
      process.stdout.write(options);
      return undefined;
    }
    return await start(options, env);
  } catch (error) {
    process.stderr.write(`${wordsFor(error)}\n`);
    process.exitCode = 1;
    return undefined;
  }
};

type Options = { config: string | undefined; host: string | undefined; port: number | undefined };

const readOptions = (args: readonly string[]): Options | string => {
  const text = { type: "string" } as const;
  const flag = { type: "boolean" } as const;
  const help = { type: "boolean", short: "h" } as const;
  const { values } = parseOptions(args, { config: text, host: text, port: text, version: flag, help });
  if (values.help) return HELP;
  if (values.version) return `${version}\n`;
  const port = values.port === undefined ? undefined : Number(values.port);
  if (port !== undefined && !(values.port?.trim() && Number.isInteger(port) && port >= 0 && port <= 65535)) {
    throw new UsageError(`--port ${values.port} is no port: give a whole number from 0 to 65535.`);
  }
  return { config: values.config, host: values.host, port };
};

const start = async ({ config: file, host, port }: Options, env: NodeJS.ProcessEnv): Promise<Served> => {
  const load = () => loadConfig({ file, env, host, port, built: BUILT });
  const loaded = await load();
  const logger = createLogger({
    level: oneOf(env, "LOG_LEVEL", ["debug", "info", "warn", "error"]) ?? "info",
    format: oneOf(env, "LOG_FORMAT", ["json", "pretty"]),
    colour: !env.NO_COLOR && env.TERM !== "dumb",
  });
  logger.hide(loaded.secrets);
  let watch: ConfigWatch | undefined;
  // A caller in the moment before the file is watched is told that nothing has changed since the start, which is true.
  const readConfig = (agent?: string) => watch?.reload("rpc", agent);
  // A start may wait for its store on nothing but timers that do not keep the process alive.
  const alive = setInterval(() => {}, 1_000);
  const gateway = await startGateway({ loaded, logger, readConfig, configState: () => watch?.state }).finally(() =>
    clearInterval(alive),
  );
  if (loaded.tryOut) process.stdout.write(banner(gateway, loaded.tryOut, process.cwd()));
  watch = watchFile(gateway, loaded, load, logger);
  return { gateway, logger, watch };
};

const watchFile = (gateway: Gateway, running: LoadedConfig, load: () => Promise<LoadedConfig>, logger: Logger) =>
  watchConfig({
    running,
    load: async () => {
      const loaded = await load();
      logger.hide(loaded.secrets);
      return loaded;
    },
    onChange: (config, { changed, needsRestart, warnings }, cause) => {
      for (const detail of warnings) gateway.events.configWarned({ about: "reload", detail });
      void gateway.reconfigure(config, { changed, needsRestart }, cause);
    },
    onInvalid: ({ problems }, cause) => gateway.refuseConfig(problems, cause),
    signal: gateway.closing,
  });

/** The value of a variable that has to be one of a few; undefined where it is empty or not set. */
const oneOf = <const T extends string>(env: NodeJS.ProcessEnv, name: string, choices: readonly T[]): T | undefined => {
  const value = env[name];
  if (!value) return undefined;
  const choice = choices.find((one) => one === value);
  if (choice) return choice;
  throw new UsageError(`${name} is ${value}: give ${choices.join(", ").replace(/, (?=[^,]*$)/, " or ")}.`);
};

const wordsFor = (error: unknown): string => {
  if (error instanceof ConfigError) return `The configuration is refused:\n${error.message}`;
  if (error instanceof UsageError) return error.message;
  const { message, cause, stack } = error as Error;
  return cause === undefined ? (stack ?? String(error)) : message;
};
