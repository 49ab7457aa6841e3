import type { Command } from "commander";
import { calling } from "../calling.ts";
import { UsageError } from "../failures.ts";
import { isTerminal, print } from "../terminal.ts";

const PAGES: Record<string, string> = { dlv: "d", turn: "t", evt: "e" };
const OPENERS: Partial<Record<NodeJS.Platform, string>> = { darwin: "open", win32: "explorer" };

export const addOpen = (program: Command): void => {
  calling(
    program
      .command("open")
      .summary("open the console in a browser")
      .description(
        "Prints the address of the console, or of the page of one thing, and opens it where there is a browser.",
      )
      .argument("[id]", "of a delivery, a turn, an event or a session")
      .addHelpText(
        "after",
        "\nThe token goes along in the address's fragment, which no server sees.\n\nExamples:\n  agent-gateway open\n  agent-gateway open dlv_01M7YN0XENG6PX2VW8BN0JQS4T",
      ),
    async ({ address: { url, key }, options }, id: string | undefined) => {
      const page = `${url}/console${id === undefined ? "" : pathOf(id)}`;
      const link = key === undefined ? page : `${page}#token=${encodeURIComponent(key)}`;
      print(options.json ? JSON.stringify({ url: link }) : link);
      if (!isTerminal(process.stdout)) return;
      const { spawn } = await import("node:child_process");
      const opener = spawn(OPENERS[process.platform] ?? "xdg-open", [link], { stdio: "ignore", detached: true });
      opener.on("error", () => {}); // No browser is here: the link is printed.
      opener.unref();
    },
  );
};

const pathOf = (id: string): string => {
  const [, prefix = ""] = /^([a-z]+)_[0-9A-Z]{20,}$/.exec(id) ?? [];
  const page = PAGES[prefix] ?? (id.includes(":") ? "s" : undefined);
  if (page === undefined)
    throw new UsageError(`${id} is no id of a delivery (dlv_…), a turn (turn_…), an event (evt_…) or a session.`);
  return `/${page}/${encodeURIComponent(id)}`;
};
