import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { afterAll, expect, test } from "vitest";
import { everyCommand, nameOf } from "#cli/command-tree.ts";
import { createProgram } from "#cli/run.ts";
import { root } from "#test/harness/process.ts";
import { emptyFolder } from "./cli.ts";
import { startCommands } from "./gateway.ts";

const PAGE = join(root, "docs/cli.md");

const INTRODUCTION = `# The command line

<!-- Written from the commands: CLI_DOCS=renew npx vitest run --project shared test/cli/docs.test.ts -->

\`agent-gateway\` runs a gateway, and calls one: it sends messages, shows what happened, and manages agents, keys and sessions. In a clone of the
repository, type \`npx agent-gateway\` in its place.

## Where the gateway is

A command that calls a gateway finds it by its options (\`--url\`, \`--key\`, \`--rpc-token\`, \`--webhook-token\`), else by the environment, else by the
configuration in the folder.

| variable | |
|---|---|
| \`GATEWAY_URL\` | the address; \`http://127.0.0.1:18789\` without it |
| \`REST_API_KEY\` | a REST key |
| \`RPC_TOKEN\` | an RPC token |
| \`WEBHOOK_TOKEN\` | the webhook token |
| \`CONSOLE_TOKEN\` | the console token, valid on every surface except webhooks |
| \`GATEWAY_CONFIG\` | the configuration, in place of \`gateway.json5\` in the folder |
| \`GATEWAY_HOST\`, \`GATEWAY_PORT\` | where the gateway on this machine listens, over the configuration |

A command uses the weakest credential that can do its call: a \`chat\` key for messages, an \`admin\` key for turns and deliveries, the console token for keys. The gateway then books
its usage to that key. \`--key\` names the one key to use.

Without an address, \`gateway.json5\` of the folder names it, with its tokens, and with \`gateway.env\` next to it for variables that are not set. If you name the address that is in
this file, its tokens are used, too; for any other address they are not.
\`agent-gateway init\` writes both files, and \`serve\` reads both. \`init --template\` starts from a GitHub review bot or a daily brief, which work at once.

The folder may be a stranger's, such as a clone. A command therefore sends the tokens of a configuration only to addresses of this machine: loopback, an address of one of its
interfaces, or \`localhost\`. It fills in only \`REST_API_KEY\`, \`RPC_TOKEN\`, \`WEBHOOK_TOKEN\`, \`CONSOLE_TOKEN\`, \`GATEWAY_HOST\` and \`GATEWAY_PORT\` from the environment, and the
variables in \`gateway.env\`. For a gateway elsewhere, pass \`--url\` and its tokens.

## What it prints

Data goes to standard output, messages to standard error. \`--json\` prints JSON; commands that continue, such as \`tail\`, print one object a line. \`-q\` prints only
ids. A control character in a text of a sender, a server or a file is printed as \`\\u001b\`, in JSON and
elsewhere, so that it cannot control the terminal. Colours and progress are for terminals; \`NO_COLOR\` turns the colours off. Every error ends with the next command.

| exit code | |
|---|---|
| 0 | done |
| 1 | failed |
| 2 | wrong usage |
| 3 | no gateway answers |
| 4 | not allowed: a token is missing or wrong |
| 5 | not found |
| 6 | refused by a limit; try again later |
| 7 | the turn failed |
| 130 | ended by Ctrl-C |

## Completion in a shell

\`agent-gateway completion bash\` (or \`zsh\`, \`fish\`, \`powershell\`) prints a script; its help says where to put it.
`;

/** Replaces the values that differ in each run by those on the page. */
function settled(text: string, address: string): string {
  const ids = new Map<string, string>();
  return text
    .replaceAll(address, "http://127.0.0.1:18789")
    .replace(/\b(turn|dlv|msg|evt|req)_[0-9A-Z]{26}|\b(webhook|chat):[0-9A-Z]{26}/g, (id) => {
      const shown = ids.get(id) ?? id.replace(/[0-9A-Z]{26}$/, `01M7YN0XEN${String(ids.size + 1).padStart(16, "0")}`);
      ids.set(id, shown);
      return shown;
    })
    .replace(/\d\d:\d\d:\d\d/g, "14:03:21")
    .replace(/ *\+[\d.]+ m?s\b/g, "    +2 ms")
    .replace(/\b(in|of) \d+ ms/g, "$1 2 ms")
    .replace(/\d+ of 100 calls/g, "99 of 100 calls")
    .replace(/Node \d+\.\d+\.\d+/g, "Node 20.19.0");
}

const { run, gateway } = await startCommands();
const folder = emptyFolder(afterAll);

/** Commands whose outputs are shown, each with a title. A later one may use an id that an earlier one printed. */
async function examples(): Promise<string> {
  writeFileSync(join(folder, "alert.json"), '{"status":"firing","title":"disk"}');
  const told: string[] = [];
  const show = async (title: string, ...args: string[]): Promise<string> => {
    const { out, err } = await run(args, { cwd: folder });
    const typed = args.map((arg) => (/^[\w./:-]+$/.test(arg) ? arg : `'${arg}'`)).join(" ");
    told.push(`${title}\n\n\`\`\`console\n$ agent-gateway ${typed}\n${out}${err}\`\`\`\n`);
    return out;
  };
  await show("A message and its reply, as it is written:", "send", "main", "What changed since yesterday?");
  await show("A failed turn:", "send", "bad", "Are you there?");
  await show("A test of the mappings, which does not start a turn:", "hooks", "test", "alert.json");
  const sent = await show("The same payload, sent:", "hooks", "send", "alert.json");
  const [id = ""] = /dlv_\w+/.exec(sent) ?? [];
  await run(["deliveries", "replay", id, "--wait"]);
  await show("Its timeline:", "deliveries", "show", id);
  await show("The latest requests:", "deliveries", "list", "--limit", "3");
  await show("The agents:", "agents", "list");
  await show("A check of the machine and the gateway:", "doctor");
  await show("A mistake:", "sesions", "list");
  return told.join("\n");
}

/** The help of a command for a reader, with its examples. */
function helpOf(command: Command): string {
  let help = "";
  command.configureOutput({ writeOut: (text) => (help += text), getOutHelpWidth: () => 110 });
  command.outputHelp();
  return help.trim();
}

test("docs/cli.md has every command with its help, and real output of commands", async () => {
  const commands = [...everyCommand(createProgram())].filter(
    ({ commands, parent }) => parent !== null && commands.length === 0,
  );
  const reference = commands.map((command) => `### ${nameOf(command)}\n\n\`\`\`text\n${helpOf(command)}\n\`\`\`\n`);
  const shown = settled(await examples(), gateway.url);
  const page = `${INTRODUCTION}\n## What it looks like\n\n${shown}\n## Every command\n\n${reference.join("\n")}`;
  if (process.env.CLI_DOCS === "renew") writeFileSync(PAGE, page);
  expect(page).toBe(readFileSync(PAGE, "utf8"));
});
