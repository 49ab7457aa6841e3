import type { Findings } from "./check.ts";
import { secretsOf } from "./check-secrets.ts";
import type { CheckedConfig } from "./conform.ts";
import type { Fault, Path } from "./problems.ts";
import { meantReference } from "./references.ts";

/** Refuses a secret that was meant as a reference but would be taken as it stands. `written` is the configuration before its references were filled in. */
export function checkReferences(config: CheckedConfig, written: unknown): Findings {
  const faults = [...secretsOf(config).map(({ path }) => path), ...otherSecrets(config)].flatMap((path): Fault[] => {
    const right = meantReference(valueAt(written, path));
    if (right === undefined) return [];
    const message = `looks like a reference to a variable, but is taken as it stands: write \`${right}\`. If it is the secret itself, put it in a variable.`;
    return [{ path, on: "value", message }];
  });
  return { faults, warnings: [] };
}

/** What the gateway sends to others to prove who it is. */
function otherSecrets({ agents, providers, tools, store }: CheckedConfig): Path[] {
  const headersAt = (path: Path, of: { headers?: Readonly<Record<string, string>> } | undefined): Path[] =>
    Object.keys(of?.headers ?? {}).map((name) => [...path, "headers", name]);
  return [
    ...Object.entries(providers).flatMap(([name, provider]) => [
      ["providers", name, "apiKey"],
      ...headersAt(["providers", name], provider),
    ]),
    ...Object.entries(agents).flatMap(([name, { http, a2a }]) => [
      ...headersAt(["agents", name, "http"], http),
      ...headersAt(["agents", name, "a2a"], a2a),
    ]),
    ...Object.entries(tools).flatMap(([name, server]) =>
      server.type === "http" ? headersAt(["tools", name], server) : [],
    ),
    ...(store.type === "postgres"
      ? typeof store.url === "string"
        ? [["store", "url"]]
        : store.url.map((_, index) => ["store", "url", index])
      : []),
  ];
}

const valueAt = (value: unknown, path: Path): unknown =>
  path.reduce<unknown>((node, step) => (node as Record<string | number, unknown> | undefined)?.[step], value);
