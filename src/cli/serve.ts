import { type LoadedConfig, loadConfig } from "#config/load.ts";
import { type ConfigWatch, watchConfig } from "#config/watch.ts";
import { BUILT, type Gateway, type GatewayOptions, startGateway } from "#gateway/gateway.ts";
import { createLogger, type Logger } from "#observe/logger.ts";
import { banner } from "./banner.ts";
import { configFile, withEnvFile } from "./configured.ts";
import { UsageError } from "./failures.ts";
import { print } from "./terminal.ts";

export type ServeOptions = { config?: string; host?: string; port?: string };

/** The moment within which the same signal again is the same one: npm passes on a signal that the process group got too. */
const REPEAT_MS = 1_000;

/** Runs the gateway until a signal ends it. Throws the reason if it cannot start. */
export async function serve(options: ServeOptions, env: NodeJS.ProcessEnv): Promise<void> {
  const { gateway, logger } = await start(options, env);
  let first: { signal: string; at: number } | undefined;
  let failed = false;

  const stop = async (cause: string): Promise<void> => {
    // Work may wait on nothing but timers that do not keep the process alive.
    const alive = setInterval(() => {}, 1_000);
    await gateway.drain(cause);
    await logger.flush();
    clearInterval(alive);
    process.exit(failed ? 1 : 0);
  };
  const onSignal = (signal: "SIGTERM" | "SIGINT", code: number): void => {
    const at = performance.now();
    if (first === undefined) {
      first = { signal, at };
      void stop(signal);
    } else if (first.signal !== signal || at - first.at >= REPEAT_MS) {
      process.exit(code);
    }
  };
  const onFailure = (where: string) => (error: unknown) => {
    gateway.events.unexpectedError({ error, where });
    if (failed) return;
    failed = true;
    if (first === undefined) {
      first = { signal: where, at: -Infinity };
      void stop(where);
    }
  };

  process.on("SIGTERM", () => onSignal("SIGTERM", 143));
  process.on("SIGINT", () => onSignal("SIGINT", 130));
  process.on("SIGHUP", () => void gateway.reload());
  process.on("uncaughtException", onFailure("uncaughtException"));
  // An unhandled rejection of a backend ends nothing: its turn ends, at the latest by its deadline.
  process.on("unhandledRejection", (error) => gateway.events.unexpectedError({ error, where: "unhandledRejection" }));
  gateway.ready.catch(onFailure("contract"));
}

function portOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const port = Number(text);
  if (text.trim() && Number.isInteger(port) && port >= 0 && port <= 65535) return port;
  throw new UsageError(`--port ${text} is not a port: give a whole number from 0 to 65535.`);
}

type Served = { gateway: Gateway; logger: Logger };

/** Starts the gateway, and has it follow its configuration. */
export async function start(options: ServeOptions, env: NodeJS.ProcessEnv): Promise<Served> {
  const { config: file, host } = options;
  const port = portOf(options.port);
  const all = () => withEnvFile(configFile(file, env), env);
  const load = () => loadConfig({ file, env: all(), host, port, built: BUILT });
  const loaded = await load();
  const logger = createLogger({
    level: oneOf(env, "LOG_LEVEL", ["debug", "info", "warn", "error"]) ?? "info",
    format: oneOf(env, "LOG_FORMAT", ["json", "pretty"]),
    colour: !env.NO_COLOR && env.TERM !== "dumb",
  });
  logger.hide(loaded.secrets);
  let watch: ConfigWatch | undefined;
  // Before the file is watched, a caller learns that nothing has changed since the start, which is true.
  const readConfig: GatewayOptions["readConfig"] = (...asked) => watch?.reload(...asked);
  // A start may wait for its store on nothing but timers that do not keep the process alive.
  const alive = setInterval(() => {}, 1_000);
  const gateway = await startGateway({
    loaded,
    logger,
    env: all(),
    readConfig,
    configState: () => watch?.state,
  }).finally(() => clearInterval(alive));
  if (loaded.tryOut)
    print(banner({ ...gateway, code: gateway.signInCode(loaded.tryOut.CONSOLE_TOKEN) }, loaded.tryOut, process.cwd()));
  watch = watchFile(gateway, loaded, load, logger);
  return { gateway, logger };
}

function watchFile(gateway: Gateway, running: LoadedConfig, load: () => Promise<LoadedConfig>, logger: Logger) {
  return watchConfig({
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
    onUnchanged: () => gateway.retryEndpoints(),
    onInvalid: ({ problems }, cause) => gateway.refuseConfig(problems, cause),
    signal: gateway.closing,
  });
}

/** The value of a variable with a few allowed values; undefined if it is empty or not set. */
function oneOf<const T extends string>(env: NodeJS.ProcessEnv, name: string, choices: readonly T[]): T | undefined {
  const value = env[name];
  if (!value) return undefined;
  const choice = choices.find((one) => one === value);
  if (choice) return choice;
  throw new UsageError(`${name} is ${value}: give ${choices.join(", ").replace(/, (?=[^,]*$)/, " or ")}.`);
}
