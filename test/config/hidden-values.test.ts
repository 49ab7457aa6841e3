// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { describe, expect, test } from "vitest";
import type { CheckedConfig } from "#config/config.ts";
import { hiddenValues } from "#config/hidden-values.ts";
import { resolveReferences } from "#config/references.ts";
import { BUILT } from "#gateway/gateway.ts";
import { load } from "./configs.ts";
import { documentWith, SHOWN, secretPlaces } from "./schema-places.ts";

const SECRET = "s3cr3t+value/of=this*run";

/** The hidden values of this configuration, which is completed with an echo agent. */
async function hidden(config: object, env: Record<string, string> = {}): Promise<readonly string[]> {
  const whole = { agents: { main: { backend: "echo" } }, ...config };
  return (await load(JSON.stringify(whole), { env, built: { ...BUILT, programFlaw: () => undefined } })).secrets;
}
function tool(url: string) {
  return { tools: { search: { type: "http", url } } };
}
function program(...run: string[]) {
  return { agents: { main: { backend: "command", command: { run } } } };
}

describe("the value of a variable is hidden", () => {
  test.each([
    ["in the query of a tool's address", tool("https://mcp.example.com/sse?v=${VALUE}")],
    ["in the path of an address", tool("https://mcp.example.com/${VALUE}/sse")],
    ["as the password in an address", tool("https://ada:${VALUE}@mcp.example.com/")],
    ["in the address of the collector", { gateway: { tracing: { endpoint: "http://c/v1/traces?x=${VALUE}" } } }],
    ["within an argument of a program", program("cat", "--key=${VALUE}")],
    [
      "as a header under a harmless name",
      { agents: { main: { backend: "http", http: { url: "http://a", headers: { "x-team": "Team ${VALUE}" } } } } },
    ],
  ])("%s", async (_, config) => {
    expect(await hidden(config, { VALUE: SECRET.replaceAll(/[/?#]/g, "-") })).toContain(SECRET.replaceAll("/", "-"));
  });

  test("as the complete address, with the parts of it that may be secrets", async () => {
    const url = "https://mcp.example.com/services/T024BE7LD/x?version=2024-01-01&key=abcdefgh%2Bijkl";
    const found = await hidden(tool("${MCP_ADDRESS}"), { MCP_ADDRESS: url });
    expect(found).toEqual(["T024BE7LD", "abcdefgh%2Bijkl", "abcdefgh+ijkl"]);
  });

  test("in every place, if the name of the variable marks it as a secret", async () => {
    const agents = { main: { backend: "echo", description: "${TEAM_PASSWORD}" } };
    expect(await hidden({ agents }, { TEAM_PASSWORD: "hunter" })).toContain("hunter");
  });
});

describe("the value of a variable, in each place of the schema", () => {
  const VALUE = "Q3cr3t-value.of_this-run";

  test("is hidden, except the names, paths and descriptions in the list", () => {
    const shown = secretPlaces(VALUE)
      .filter(({ place, text }) => {
        const written = documentWith(place, text.replaceAll("#", "${VALUE}")) as object;
        const { value, filled } = resolveReferences({ store: { type: "memory" }, ...written }, { VALUE });
        return !hiddenValues(value as CheckedConfig, filled, {}).includes(VALUE);
      })
      .map(({ place }) => place.join("."));
    expect(shown).toEqual(SHOWN);
  });
});

describe("a value that is not a secret is shown", () => {
  test.each([
    ["a short value", program("cat", "${VALUE}"), "main"],
    ["a flag", program("cat", "${VERBOSE_KEY}"), "true"],
    ["a number", program("cat", "${VALUE}"), "1700000000"],
    ["the number of a port under a secret's name", program("cat", "${AUTH}"), "8080"],
    ["a version or an address of IP", program("cat", "${VALUE}"), "192.168.100.200"],
    ["a date", program("cat", "${VALUE}"), "2026-11-28"],
    ["a path of the system", program("cat", "${VALUE}"), "/opt/agents/main.py"],
    ["the host in an address", tool("https://${VALUE}/sse"), "tools-of-ours.example.com"],
    ["the host and port in an address", tool("https://${VALUE}/sse"), "tools-of-ours.example.com:8443"],
    ["a plain address", tool("${VALUE}"), "https://tools.example.com:8443/mcp/sse"],
    ["a model", { agents: { main: { backend: "echo", description: "${VALUE}" } } }, "gpt-5-turbo-2026"],
    ["the file of a key", program("cat", "${TLS_KEY_FILE}"), "keys-of-ours/server.pem"],
    ["the path of the store", { store: { type: "sqlite", path: "${VALUE}" } }, "our-gateway.db"],
    [
      "the name of a key",
      { gateway: { rest: { auth: { keys: [{ name: "${VALUE}", key: "k".repeat(20) }] } } } },
      "the-build-server",
    ],
  ])("%s", async (_, config, value) => {
    const env = { VALUE: value, VERBOSE_KEY: value, AUTH: value, TLS_KEY_FILE: value };
    expect(await hidden(config, env)).not.toContain(value);
  });
});

test("secrets in the file itself are hidden in addresses and arguments, by their names", async () => {
  const config = {
    tools: {
      search: { type: "http", url: "https://ada:hunter22@mcp.example.com/sse?version=2024-01-01&api_key=of-a-file" },
    },
    agents: {
      main: { backend: "command", command: { run: ["cat", "--token=of-an-argument", "--api-key", "another-of-them"] } },
    },
  };
  expect(await hidden(config)).toEqual(["of-an-argument", "another-of-them", "hunter22", "of-a-file"]);
});

test("the headers and the address of a collector from OpenTelemetry's variables are hidden", async () => {
  const env = {
    OTEL_EXPORTER_OTLP_HEADERS: "authorization=Basic%20dXNlcjpzZWNyZXQ=,x-on=true",
    OTEL_EXPORTER_OTLP_ENDPOINT: "https://c.example.com/otlp?api-key=of-the-endpoint",
  };
  expect(await hidden({}, env)).toEqual([
    "Basic%20dXNlcjpzZWNyZXQ=",
    "Basic dXNlcjpzZWNyZXQ=",
    "dXNlcjpzZWNyZXQ=",
    "of-the-endpoint",
  ]);
});

test("the effective values show no hidden value, even if it is repeated", async () => {
  const config = {
    ...tool("https://mcp.example.com/sse?key=${MCP_KEY}"),
    agents: { main: { backend: "echo", description: `It knows ${SECRET}.` } },
  };
  const { values } = await load(JSON.stringify(config), { env: { MCP_KEY: SECRET }, built: BUILT });
  expect(JSON.stringify(values)).not.toContain(SECRET);
});
