// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.
import { afterAll } from "vitest";
import { startProcess } from "#test/harness/process.ts";
import { type CliOptions, runCli, startCli } from "./cli.ts";

const env = {
  CONSOLE_TOKEN: "console-token-of-the-cli",
  REST_API_KEY: "rest-api-key-of-the-cli",
  RPC_TOKEN: "rpc-token-of-the-cli",
  WEBHOOK_TOKEN: "webhook-token-of-the-cli",
  GITHUB_SECRET: "github-secret-of-the-cli",
  NOTIFY_SECRET: "notify-secret-of-the-cli",
};

const config = {
  gateway: {
    defaultAgent: "main",
    console: { token: "${CONSOLE_TOKEN}" },
    rest: { auth: { keys: [{ name: "ci", key: "${REST_API_KEY}", scopes: ["chat"] }] } },
    rpc: { auth: { type: "bearer", tokens: [{ name: "ops", token: "${RPC_TOKEN}", permissions: ["*"] }] } },
  },
  webhooks: {
    token: "${WEBHOOK_TOKEN}",
    mappings: {
      github: {
        match: { "headers.x-github-event": "push" },
        message: "{body.who} pushed",
        verify: { type: "github", secret: "${GITHUB_SECRET}" },
      },
      alert: { match: { "body.status": "firing" }, message: "Look: {body.title}" },
    },
  },
  schedules: {
    brief: { cron: "0 0 1 1 *", timeZone: "Europe/Berlin", message: "Write the brief." },
    broken: { cron: "0 0 1 1 *", agent: "bad", message: "Fail." },
  },
  // No receiver listens there.
  notify: { ops: { url: "http://127.0.0.1:9/", secret: "${NOTIFY_SECRET}", events: ["turn.failed"] } },
  agents: {
    main: { backend: "echo" },
    slow: { backend: "echo", echo: { chunks: 4, delayMs: 20_000 } },
    bad: { backend: "echo", echo: { fail: "no such luck" } },
  },
};

/** A gateway for the commands of a file, and the commands for it: its address and its tokens are in their environment. */
export async function startCommands() {
  const gateway = await startProcess({ config, env, onFinished: afterAll });
  while (!(await fetch(`${gateway.url}/readyz`)).ok) await new Promise((resolve) => setTimeout(resolve, 50));
  const ours = {
    GATEWAY_URL: gateway.url,
    REST_API_KEY: env.CONSOLE_TOKEN,
    RPC_TOKEN: env.RPC_TOKEN,
    WEBHOOK_TOKEN: env.WEBHOOK_TOKEN,
  };
  const withEnv = (options: CliOptions = {}): CliOptions => ({ ...options, env: { ...ours, ...options.env } });
  return {
    gateway,
    secrets: env,
    run: (args: readonly string[], options?: CliOptions) => runCli(args, withEnv(options)),
    start: (args: readonly string[], options?: CliOptions) => startCli(args, withEnv(options)),
    /** The JSON that a command prints. */
    json: async (...args: string[]) => {
      const { code, out, err } = await runCli([...args, "--json"], withEnv());
      if (code !== 0) throw new Error(`It ended with ${code}: ${err}`);
      return JSON.parse(out);
    },
  };
}
