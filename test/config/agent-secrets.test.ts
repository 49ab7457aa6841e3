import { expect, test } from "vitest";
import { settle } from "#config/load.ts";
import { unwritten } from "#config/problems.ts";
import type { ConfigFile } from "#generated/config-types.ts";

const file: ConfigFile = {
  gateway: { defaultAgent: "service" },
  providers: { local: { type: "openai-compatible", baseUrl: "http://127.0.0.1:9", apiKey: "key-1" } },
  agents: {
    service: {
      backend: "http",
      http: {
        url: "http://127.0.0.1:9",
        secret: "secret-2",
        headers: { authorization: "Bearer token-3", accept: "text/x" },
      },
    },
    program: {
      backend: "command",
      command: { run: ["cat"], env: { OPENAI_API_KEY: "key-4", NODE_ENV: "production" } },
    },
  },
  tools: { files: { type: "stdio", run: ["cat"], env: { GITHUB_TOKEN: "token-5" } } },
};

test("the log is told the secrets of agents, providers and tools, and of their settings nothing else", async () => {
  const built = { stores: ["memory"], backends: ["http", "command"] };
  const { secrets } = await settle(unwritten(file), { env: {}, built });
  expect(secrets).toEqual(
    expect.arrayContaining(["key-1", "secret-2", "Bearer token-3", "token-3", "key-4", "token-5"]),
  );
  expect(secrets.join()).not.toMatch(/production|text\/x/);
});
