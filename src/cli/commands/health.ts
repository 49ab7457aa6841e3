import type { Command } from "commander";
import { calling } from "../calling.ts";
import { oneLine, printItem, printList } from "../output.ts";
import { print, styled } from "../terminal.ts";
import { momentOf, wholeNumber } from "../values.ts";

export function addHealth(program: Command): void {
  for (const add of [addHealthCheck, addDoctor, addUsage, addConfig]) add(program);
}

function addHealthCheck(program: Command): void {
  calling<{ live?: boolean; timeout: string }>(
    program
      .command("health")
      .summary("check if a gateway accepts work; for containers")
      .description(
        "Checks if a gateway accepts work, without a token. The exit code is 0 if it does, 1 if not, and 3 if no gateway answers.",
      )
      .option("--live", "only check that the process runs")
      .option("--timeout <ms>", "the time to wait for the answer", "3000")
      .addHelpText(
        "after",
        "\nExamples:\n  agent-gateway health\n  HEALTHCHECK CMD agent-gateway health --url http://127.0.0.1:18789",
      ),
    async ({ gateway, options, signal }) => {
      const requestOptions = { signal, timeoutMs: wholeNumber(options.timeout, "--timeout"), maxRetries: 0 };
      if (options.live) {
        const { status, version } = await gateway.ops.healthz(requestOptions);
        return printItem(options, { status, version }, status, () => `The gateway is running, version ${version}.`);
      }
      const { ready, parts } = await gateway.ops.readyz(requestOptions);
      if (!ready) process.exitCode = 1;
      const bad = Object.entries(parts).filter(([, { ok }]) => !ok);
      printItem(options, { ready, parts }, ready ? "ready" : "not-ready", () =>
        ready
          ? "It is ready."
          : `It is not ready: ${bad.map(([name, { detail }]) => `${name}${detail ? ` (${oneLine(detail)})` : ""}`).join(", ")}.`,
      );
    },
  );
}

function addDoctor(program: Command): void {
  calling<{ turn?: boolean }>(
    program
      .command("doctor")
      .summary("check this machine and its gateway, and print what to fix")
      .description(
        "Checks this machine, the configuration in this folder, and the gateway. Each check has a name, a state, and a remedy.",
      )
      .option("--turn", "also send a message to the default agent, and wait for its reply")
      .addHelpText(
        "after",
        "\nThe exit code is 1 if a check fails, or if there is neither a key nor a token to check with.\n\nExamples:\n  agent-gateway doctor\n  agent-gateway doctor --turn --json",
      ),
    async (given) => {
      const { diagnose } = await import("../doctor.ts");
      const checks = await diagnose(given);
      if (checks.some(({ state }) => state === "failed")) process.exitCode = 1;
      if (given.options.json) return print(JSON.stringify({ checks }, null, 2));
      const width = Math.max(...checks.map(({ id }) => id.length));
      for (const { id, state, words, next } of checks) {
        const sign =
          state === "ok" ? styled("green", "✓") : state === "warning" ? styled("yellow", "!") : styled("red", "✕");
        print(`${sign} ${id.padEnd(width)}  ${oneLine(words)}`);
        if (next) print(`  ${" ".repeat(width)}  → ${next}`);
      }
    },
  );
}

function addUsage(program: Command): void {
  calling<{ from?: string; to?: string; agent?: string; groupBy: "agent" }>(
    program
      .command("usage")
      .summary("show usage: turns, tokens, cost")
      .option("--from <time>", "the start of the period: 24h for a day ago, or 2026-11-21")
      .option("--to <time>", "the end of the period")
      .option("--agent <name>", "only this agent")
      .option("--group-by <what>", "agent, model, surface, token, hour or day", "agent")
      .addHelpText(
        "after",
        "\nExamples:\n  agent-gateway usage --from 24h\n  agent-gateway usage --group-by model --json",
      ),
    async ({ gateway, options, signal }) => {
      const { from, to, agent, groupBy } = options;
      const params = {
        groupBy,
        ...(from && { from: momentOf(from, "--from") }),
        ...(to && { to: momentOf(to, "--to") }),
        ...(agent && { agentName: agent }),
      };
      const stats = await gateway.rpc.usage.stats(params, { signal });
      const rows = [...stats.groups, { key: "in all", counts: stats.total }];
      printList(options, stats, {
        items: rows,
        id: ({ key }) => key,
        none: "No usage.",
        columns: [
          { title: groupBy.toUpperCase(), of: ({ key }) => key },
          {
            title: "TURNS",
            of: ({ counts }) => counts.turns.completed + counts.turns.failed + counts.turns.cancelled,
            right: true,
          },
          { title: "FAILED", of: ({ counts }) => counts.turns.failed, right: true },
          { title: "TOKENS IN", of: ({ counts }) => tokensOf(counts, "input"), right: true },
          { title: "OUT", of: ({ counts }) => tokensOf(counts, "output"), right: true },
          { title: "COST", of: ({ counts }) => counts.tokens.cost?.toFixed(4), right: true },
          {
            title: "MEAN",
            of: ({ counts: { latencyMs } }) => (latencyMs.mean === null ? null : `${Math.round(latencyMs.mean)} ms`),
            right: true,
          },
        ],
      });
    },
  );
}

function addConfig(program: Command): void {
  const config = program
    .command("config")
    .summary("the configuration in force")
    .description("The configuration of a gateway.");
  calling<{ all?: boolean }>(
    config
      .command("show")
      .summary("show each value and its origin")
      .option("--all", "also show default values")
      .addHelpText(
        "after",
        "\nSecrets are hidden.\n\nExamples:\n  agent-gateway config show\n  agent-gateway config show --all --json",
      ),
    async ({ gateway, options, signal }) => {
      const config = await gateway.config.get({ signal });
      const shown = options.all ? config.values : config.values.filter(({ origin }) => origin !== "default");
      printList(
        options,
        { ...config, values: shown },
        {
          items: shown,
          id: ({ path }) => path,
          none: "Every value is the default.",
          columns: [
            { title: "KEY", of: ({ path }) => path },
            { title: "VALUE", of: ({ value }) => JSON.stringify(value) },
            {
              title: "FROM",
              of: ({ origin, line, variable }) => (origin === "file" ? `${config.file}:${line}` : (variable ?? origin)),
            },
          ],
        },
      );
    },
  );
}

type Counts = import("#generated/clients/typescript/src/rpc.ts").types.UsageCounts;

/** The tokens of turns, or nothing if no turn reported any. */
function tokensOf({ turns, tokens }: Counts, which: "input" | "output"): number | null {
  return turns.untold !== undefined && turns.untold >= turns.completed ? null : tokens[which];
}
