import type { Config } from "#config/config.ts";
import { ConfigError } from "#config/problems.ts";

/** Where traces go, how many of them, and what they say of this process. */
export type TracingSettings = {
  url: string;
  headers: Record<string, string>;
  resource: Record<string, string>;
  /** The share of exported traces, and if a caller's own choice has priority. */
  ratio: number;
  followsCaller: boolean;
  content: boolean;
  timeoutMs: number;
  queue: number;
  batch: number;
  delayMs: number;
};

const PATH = "v1/traces";
const SAMPLERS: Readonly<Record<string, { ratio: number | "argument"; followsCaller: boolean }>> = {
  always_on: { ratio: 1, followsCaller: false },
  always_off: { ratio: 0, followsCaller: false },
  traceidratio: { ratio: "argument", followsCaller: false },
  parentbased_always_on: { ratio: 1, followsCaller: true },
  parentbased_always_off: { ratio: 0, followsCaller: true },
  parentbased_traceidratio: { ratio: "argument", followsCaller: true },
};

/**
 * The settings of the configuration and of OpenTelemetry's environment variables; undefined where tracing is off. Throws a ConfigError for
 * a variable whose value cannot be followed.
 */
export function tracingSettingsOf(
  { gateway: { tracing } }: Pick<Config, "gateway">,
  env: NodeJS.ProcessEnv,
  version: string,
): TracingSettings | undefined {
  const base = env.OTEL_EXPORTER_OTLP_ENDPOINT;
  const url =
    tracing.endpoint || env.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT || (base && `${base.replace(/\/$/, "")}/${PATH}`);
  const isOff = env.OTEL_SDK_DISABLED?.toLowerCase() === "true" || env.OTEL_TRACES_EXPORTER === "none";
  if (!url || isOff) return undefined;
  if (!URL.canParse(url) || !/^https?:/.test(url))
    throw refusal(
      "OTEL_EXPORTER_OTLP_ENDPOINT",
      `is ${url}: give an address with http:// or https://, for example http://127.0.0.1:4318.`,
    );
  const protocol = env.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL || env.OTEL_EXPORTER_OTLP_PROTOCOL;
  if (protocol && protocol !== "http/json")
    throw refusal(
      "OTEL_EXPORTER_OTLP_PROTOCOL",
      `is ${protocol}: traces are sent as http/json. Set it so, or leave it out.`,
    );
  return {
    url,
    headers: {
      ...pairsOf("OTEL_EXPORTER_OTLP_HEADERS", env.OTEL_EXPORTER_OTLP_HEADERS),
      ...pairsOf("OTEL_EXPORTER_OTLP_TRACES_HEADERS", env.OTEL_EXPORTER_OTLP_TRACES_HEADERS),
      ...tracing.headers,
    },
    resource: {
      "service.name": "agent-gateway",
      "service.version": version,
      ...pairsOf("OTEL_RESOURCE_ATTRIBUTES", env.OTEL_RESOURCE_ATTRIBUTES),
      ...(env.OTEL_SERVICE_NAME && { "service.name": env.OTEL_SERVICE_NAME }),
    },
    ...samplerOf(env),
    content: tracing.content,
    timeoutMs: numberOf(env, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", numberOf(env, "OTEL_EXPORTER_OTLP_TIMEOUT", 10_000)),
    queue: numberOf(env, "OTEL_BSP_MAX_QUEUE_SIZE", 2_048),
    batch: numberOf(env, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512),
    delayMs: numberOf(env, "OTEL_BSP_SCHEDULE_DELAY", 5_000),
  };
}

/** `name=value,name=value`, with percent-encoded values. */
function pairsOf(variable: string, text = ""): Record<string, string> {
  return Object.fromEntries(
    text.split(",").flatMap((pair) => {
      if (pair.trim() === "") return [];
      const at = pair.indexOf("=");
      try {
        if (at > 0) return [[pair.slice(0, at).trim(), decodeURIComponent(pair.slice(at + 1).trim())]];
      } catch {
        // Told below: a percent sign without its digits.
      }
      // Its value may be a secret.
      throw refusal(variable, "cannot be read: give name=value, separated by commas, with values percent-encoded.");
    }),
  );
}

function samplerOf(env: NodeJS.ProcessEnv): { ratio: number; followsCaller: boolean } {
  const name = env.OTEL_TRACES_SAMPLER || "parentbased_always_on";
  const sampler = SAMPLERS[name];
  if (!sampler) throw refusal("OTEL_TRACES_SAMPLER", `is ${name}: give one of ${Object.keys(SAMPLERS).join(", ")}.`);
  if (sampler.ratio !== "argument") return { ratio: sampler.ratio, followsCaller: sampler.followsCaller };
  const ratio = Number(env.OTEL_TRACES_SAMPLER_ARG || "1");
  if (!(ratio >= 0 && ratio <= 1))
    throw refusal("OTEL_TRACES_SAMPLER_ARG", `is ${env.OTEL_TRACES_SAMPLER_ARG}: give a number from 0 to 1.`);
  return { ratio, followsCaller: sampler.followsCaller };
}

function numberOf(env: NodeJS.ProcessEnv, name: string, usual: number): number {
  const text = env[name];
  if (!text) return usual;
  const value = Number(text);
  if (Number.isSafeInteger(value) && value > 0) return value;
  throw refusal(name, `is ${text}: give a whole number above 0.`);
}

function refusal(key: string, message: string): ConfigError {
  return new ConfigError([{ file: null, line: null, column: null, key, message }]);
}
