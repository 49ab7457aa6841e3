import type { Command } from "commander";
import type { Address } from "../address.ts";
import { calling, reasonOf } from "../calling.ts";
import type { Credential } from "../credentials.ts";
import { notAReply, UsageError } from "../failures.ts";
import { isTerminal, print, say } from "../terminal.ts";

const PAGES: Record<string, string> = { dlv: "d", turn: "t", evt: "e" };

export function addOpen(program: Command): void {
  calling(
    program
      .command("open")
      .summary("open the console in a browser")
      .description("Prints the address of the console, or of the page of an id, and opens it if there is a browser.")
      .argument("[id]", "the id of a delivery, a turn, an event or a session")
      .addHelpText(
        "after",
        "\nThe address has a code instead of the token. The code signs one browser in, once and within a minute.\nWith a REST key, the page first asks whether to sign in as that key.\nThe browser is started with the path of a page that only your user can read, so that other users of the machine\ndo not see the code in the list of processes. The page is deleted after a minute. If the browser does not open\nthe console, open the printed address.\n\nExamples:\n  agent-gateway open\n  agent-gateway open dlv_01M7YN0XENG6PX2VW8BN0JQS4T",
      ),
    async ({ address, options, signal }, id: string | undefined) => {
      const { url, credentials } = address;
      const page = `${url}/console${id === undefined ? "" : pathOf(id)}`;
      // The page has the rights of its token.
      const strongest = credentials.rest.at(-1);
      const code = strongest && (await codeOf(address, strongest, signal));
      const link = code === undefined ? page : `${page}#code=${code}`;
      print(options.json ? JSON.stringify({ url: link }) : link);
      if (!isTerminal(process.stdout)) return;
      const { openLink, openSecretLink } = await import("../browser.ts");
      await (code === undefined ? openLink(link) : openSecretLink(link));
    },
  );
}

/** A code that signs in as the caller. Undefined, with a message, if the key may not create one or the gateway cannot. */
async function codeOf(address: Address, credential: Credential, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { Gateway } = await import("#generated/clients/typescript/src/index.ts");
    const gateway = new Gateway({ url: address.url, key: credential.token });
    const { code } = await gateway.codes.create({ signal });
    // The code goes to a program as part of a link.
    if (typeof code !== "string" || !/^[\w-]+$/.test(code)) throw notAReply(address.url);
    return code;
  } catch (error) {
    const { name } = error as Error;
    const isUsual = name === "forbidden" || (name === "not-found" && (await hasConsole(address, signal)));
    if (!isUsual) throw reasonOf(error, { ...address, refused: credential });
    const why = name === "forbidden" ? "The key lacks the scope admin" : "The gateway is older than this command";
    say(`${why}: sign in on the page, with the console token.`);
    return undefined;
  }
}

function hasConsole({ url }: Address, signal: AbortSignal): Promise<boolean> {
  return fetch(`${url}/console`, { method: "HEAD", redirect: "manual", signal }).then(
    ({ ok }) => ok,
    () => false,
  );
}

function pathOf(id: string): string {
  const [, prefix = ""] = /^([a-z]+)_[0-9A-Z]{20,}$/.exec(id) ?? [];
  const page = PAGES[prefix] ?? (id.includes(":") ? "s" : undefined);
  if (page === undefined)
    throw new UsageError(`${id} is not the id of a delivery (dlv_…), a turn (turn_…), an event (evt_…) or a session.`);
  return `/${page}/${encodeURIComponent(id)}`;
}
