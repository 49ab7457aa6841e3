import { type Command, Option } from "commander";
import type { KeyBudget, KeyRate, KeyScope } from "#generated/clients/typescript/src/rest-types.ts";
import { calling } from "../calling.ts";
import { confirmed } from "../confirm.ts";
import { UsageError } from "../failures.ts";
import { oneLine, printItem, printList } from "../output.ts";
import { print, say } from "../terminal.ts";
import { endOf, lengthOf, shortTime } from "../values.ts";

export function addKeys(program: Command): void {
  const keys = program
    .command("keys")
    .summary("REST keys: create, list, rotate, revoke")
    .description("The keys of REST. These commands need the console token.");

  calling<{ scope?: KeyScope[]; expires?: string; agents?: string; rate?: string } & BudgetOptions>(
    keys
      .command("create")
      .summary("create a key, and print it once")
      .argument("<name>", "the user of the key, a person or a program")
      .addOption(new Option("--scope <scope...>", "its scopes").choices(["chat", "admin"]))
      .option("--expires <when>", "its expiry: 30d, or 2027-03-01 (default: never)")
      .option("--agents <names>", "the only agents that the key may use, such as a,b (default: all)")
      .option("--rate <limit>", "the key's rate limit, such as 100/60s (default: the limit of REST)")
      .option("--tokens <budget>", "the token budget of the key, such as 200000/day (default: none)")
      .option("--cost <budget>", "the cost of its turns, such as 2.5/day (default: no budget)")
      .option("--time-zone <zone>", "the time zone of its budget (default: UTC)")
      .addHelpText(
        "after",
        "\nExamples:\n  agent-gateway keys create ci\n  agent-gateway keys create dashboard --scope admin --expires 90d\n  agent-gateway keys create widget --agents support --rate 20/60s --tokens 200000/day\n  KEY=$(agent-gateway keys create ci -q)",
      ),
    async ({ gateway, options, signal }, name = "") => {
      const body = {
        name,
        ...(options.scope && { scopes: options.scope }),
        ...(options.expires && { expires_at: endOf(options.expires, "--expires") }),
        ...(options.agents !== undefined && { agents: namesIn(options.agents) }),
        ...(options.rate !== undefined && { rate_limit: rateOf(options.rate) }),
        ...budgetOf(options),
      };
      const made = await gateway.keys.create(body, { signal });
      if (options.json) return print(JSON.stringify(made, null, 2));
      print(made.key);
      if (!options.quiet)
        say(`This is the key ${oneLine(name)} (${made.key_id}). It is shown only once: store it now.`);
    },
  );

  calling(
    keys.command("list").summary("list the keys").addHelpText("after", "\nExample:\n  agent-gateway keys list"),
    async ({ gateway, options, signal }) => {
      const all = [];
      for await (const key of gateway.keys.list({}, { signal })) all.push(key);
      printList(
        options,
        { keys: all },
        {
          items: all,
          id: ({ key_id, name }) => key_id ?? name,
          none: "No keys. agent-gateway keys create NAME creates one.",
          columns: [
            { title: "KEY", of: ({ key_id }) => key_id ?? "(configuration)" },
            { title: "NAME", of: ({ name }) => name },
            { title: "SCOPES", of: ({ scopes }) => scopes.join(" ") },
            { title: "AGENTS", of: ({ agents }) => agents?.join(",") ?? "all" },
            { title: "RATE", of: ({ rate_limit }) => rateText(rate_limit) },
            { title: "BUDGET", of: ({ budget }) => budgetText(budget) },
            { title: "LAST USED", of: ({ last_used_at }) => shortTime(last_used_at) },
            { title: "ENDS", of: ({ expires_at }) => shortTime(expires_at) },
          ],
        },
      );
    },
  );

  calling<{ overlap?: string }>(
    keys
      .command("rotate")
      .summary("replace a key by a new one, and print it once")
      .argument("<key>", "the id of the key to replace")
      .option("--overlap <length>", "the time for which the old key still works, such as 1d")
      .addHelpText("after", "\nExample:\n  agent-gateway keys rotate key_01M7YN0XEMM1B7E5S8YF3GKP2N --overlap 1d"),
    async ({ gateway, options, signal }, id = "") => {
      const overlap = options.overlap === undefined ? undefined : lengthOf(options.overlap);
      if (options.overlap !== undefined && overlap === undefined)
        throw new UsageError(`--overlap ${options.overlap} is not a duration. Write 30m, 12h or 1d.`);
      const made = await gateway.keys.rotate(
        id,
        overlap === undefined ? undefined : { overlap_seconds: overlap / 1_000 },
        { signal },
      );
      if (options.json) return print(JSON.stringify(made, null, 2));
      print(made.key);
      if (!options.quiet)
        say(
          `${made.key_id} takes the place of ${id}, which works until ${shortTime(made.replaced_expires_at)}. It is shown only once: store it now.`,
        );
    },
  );

  calling<{ yes?: boolean }>(
    keys
      .command("revoke")
      .summary("revoke a key")
      .argument("<key>", "its id")
      .option("--yes", "do not ask")
      .addHelpText("after", "\nExample:\n  agent-gateway keys revoke key_01M7YN0XEMM1B7E5S8YF3GKP2N --yes"),
    async ({ gateway, options, signal }, id = "") => {
      await confirmed(`Revoke ${oneLine(id)}? Its users are refused immediately.`, options, signal);
      await gateway.keys.revoke(id, { signal });
      printItem(options, { key_id: id, revoked: true }, id, () => `${id} is revoked.`);
    },
  );
}

function namesIn(list: string): string[] {
  const names = list.split(",").map((name) => name.trim());
  if (names.every((name) => name !== "")) return names;
  throw new UsageError(`--agents ${list} is not a list of agents. Write a,b.`);
}

function rateOf(text: string): KeyRate {
  const [, limit = "", length = ""] = /^(\d+)\/(\d+[smhd])$/.exec(text) ?? [];
  const window_ms = lengthOf(length);
  if (window_ms !== undefined) return { limit: Number(limit), window_ms };
  throw new UsageError(`--rate ${text} is not a rate limit. Write 100/60s: 100 requests in 60 seconds.`);
}

/** A rate limit as `--rate` takes it; without an own one, that of the surface holds. */
function rateText(rate: KeyRate | null): string {
  if (rate === null) return "–";
  return `${rate.limit}/${rate.window_ms % 1_000 === 0 ? `${rate.window_ms / 1_000}s` : `${rate.window_ms}ms`}`;
}

type BudgetOptions = { tokens?: string; cost?: string; timeZone?: string };

function budgetOf({ tokens, cost, timeZone }: BudgetOptions): { budget?: KeyBudget } {
  const limits = [limitOf("tokens", tokens), limitOf("cost", cost)].filter((limit) => limit !== undefined);
  const [first, second] = limits;
  if (!first && timeZone !== undefined) throw new UsageError("--time-zone needs a budget: --tokens, --cost or both.");
  if (!first) return {};
  if (second && second.per !== first.per)
    throw new UsageError("--tokens and --cost must have the same window, such as 200000/day and 2.5/day.");
  return { budget: Object.assign({}, ...limits, timeZone !== undefined && { time_zone: timeZone }) as KeyBudget };
}

function limitOf(unit: "tokens" | "cost", text: string | undefined): KeyBudget | undefined {
  if (text === undefined) return undefined;
  const [, limit = "", per] = /^([\d.]+)\/(hour|day|month)$/.exec(text) ?? [];
  const number = Number(limit);
  if (per && number > 0 && (unit === "cost" || Number.isSafeInteger(number)))
    return { per: per as KeyBudget["per"], [unit]: number };
  const example = unit === "tokens" ? "200000/day" : "2.5/day";
  throw new UsageError(`--${unit} ${text} is not a budget. Use a number per hour, day or month, such as ${example}.`);
}

/** A budget as the options have it. */
function budgetText(budget: KeyBudget | null): string {
  if (!budget) return "–";
  const { per, tokens, cost } = budget;
  return [tokens !== undefined && `${tokens}/${per}`, cost !== undefined && `cost ${cost}/${per}`]
    .filter(Boolean)
    .join(" ");
}
