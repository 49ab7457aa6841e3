/** A page of the site, from a file of the project or generated from the contract. */
export type PageGroup = { title: string; pages: { name: string; source?: string; title?: string }[] };

function guide(name: string, title?: string) {
  return { name, source: `docs/${name}.md`, ...(title && { title }) };
}

/** The group of pages that users of the gateway do not need. */
export const PROJECT = "The project";
/** The group of pages from the contract, which a running gateway serves. */
export const REFERENCE = "Reference";

/** The pages in the order of the navigation. */
export const GROUPS: readonly PageGroup[] = [
  {
    title: "Start",
    pages: [{ name: "index", source: "README.md", title: "Overview" }, guide("quickstart"), guide("concepts")],
  },
  {
    title: "Guides",
    pages: [
      guide("agents"),
      guide("webhooks"),
      guide("announcements"),
      guide("notifications"),
      guide("schedules"),
      guide("budgets"),
      guide("websocket", "WebSocket"),
      guide("openai", "OpenAI clients"),
      guide("mcp", "MCP clients"),
      guide("console", "The console"),
      guide("cli", "The command line"),
      guide("sdks", "SDKs"),
      guide("migrating-from-openclaw", "From OpenClaw's hooks"),
    ],
  },
  {
    title: "Running it",
    pages: [
      guide("deploying"),
      guide("configuration"),
      guide("security"),
      guide("operations"),
      guide("performance"),
      guide("troubleshooting"),
    ],
  },
  {
    title: REFERENCE,
    pages: [
      { name: "walkthroughs" },
      { name: "authentication" },
      { name: "rest" },
      { name: "hooks", title: "Webhook calls" },
      { name: "rpc" },
      { name: "pushes" },
      { name: "errors" },
      { name: "typescript", source: "generated/clients/typescript/api.md", title: "TypeScript client" },
      { name: "python", source: "generated/clients/python/api.md", title: "Python client" },
    ],
  },
  {
    title: PROJECT,
    pages: [
      { name: "changelog", source: "CHANGELOG.md" },
      guide("architecture"),
      { name: "contributing", source: "CONTRIBUTING.md" },
      { name: "reporting", source: "SECURITY.md", title: "Reporting a vulnerability" },
      ...["interface", "behaviour", "storage", "operations"].map((name) => ({
        name: `decisions-${name}`,
        source: `docs/decisions/${name}.md`,
        title: `Decisions: ${name}`,
      })),
    ],
  },
];
