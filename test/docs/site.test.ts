import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { errors } from "#generated/errors.ts";
import { methods } from "#generated/methods.ts";
import { routes } from "#generated/routes.ts";
import { root } from "#test/harness/process.ts";
import manifest from "../../package.json" with { type: "json" };
import { openSearch, type Row } from "../../scripts/docs/assets/search.ts";
import { brokenLinks } from "../../scripts/docs/links.ts";
import { render } from "../../scripts/docs/markdown.ts";
import { buildSite } from "../../scripts/docs/site.ts";
import { readContract } from "../../scripts/generate/contract.ts";
import { readWorkflows } from "../../scripts/workflows/document.ts";

const site = buildSite(readContract("specs"));
function placesOf(...pages: string[]) {
  return new Set(pages.flatMap((page) => [...String(site[page]).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)));
}

describe("the documentation", () => {
  test("has a section for each operation, method and error", () => {
    const http = placesOf("rest.html", "hooks.html");
    expect(routes.map(({ operation }) => operation).filter((id) => !http.has(id))).toEqual([]);
    expect(Object.keys(methods).filter((name) => !placesOf("rpc.html").has(name))).toEqual([]);
    expect(Object.keys(errors).filter((name) => !placesOf("errors.html").has(name))).toEqual([]);
  });

  test("names the errors that RPC answers with HTTP 200", () => {
    const lineOf = (name: string) => String(site["errors.md"]).split(`## ${name}\n\n`)[1]?.split("\n")[0];
    expect(lineOf("method-not-found")).toBe("Method not found. RPC -32601 (with HTTP 200).");
    expect(lineOf("invalid-params")).toBe("Invalid params. RPC -32602 (with HTTP 200).");
    expect(lineOf("agent-not-found")).toBe("Agent not found. HTTP 404 · RPC -32002 (with HTTP 200).");
    expect(lineOf("unauthenticated")).toBe("Authentication failed. HTTP 401 · RPC -32000.");
    expect(lineOf("too-large")).toBe("Request too large. HTTP 413 · RPC -32600.");
  });

  test("has a remedy for each error", () => {
    const parts = String(site["errors.md"]).split(/^## /m).slice(1);
    expect(parts).toHaveLength(Object.keys(errors).length);
    expect(parts.filter((part) => !part.includes("**What to do.** "))).toEqual([]);
  });

  test("shows each RPC method with curl, TypeScript and Python", () => {
    const sections = String(site["rpc.md"])
      .split(/^### /m)
      .filter((section) => Object.keys(methods).some((name) => section.startsWith(`${name}\n`)));
    expect(sections.length).toBeGreaterThanOrEqual(12);
    const isWhole = (section: string) =>
      ["sh curl", "ts TypeScript", "python Python"].every((tab) => section.includes(tab));
    expect(sections.filter((section) => !isWhole(section))).toEqual([]);
  });

  test("shows each step of each workflow with its call and its answer", () => {
    const steps = readWorkflows().workflows.flatMap(({ steps }) => steps);
    const sections = String(site["walkthroughs.md"]).split(/^### /m).slice(1);
    expect(steps.filter(({ stepId }) => !placesOf("walkthroughs.html").has(stepId))).toEqual([]);
    expect(sections).toHaveLength(steps.length);
    expect(sections.filter((section) => !/```sh\ncurl [\s\S]*Answer `\d{3}`/.test(section))).toEqual([]);
  });

  test("has no broken link, and loads nothing from other hosts", () => {
    expect(brokenLinks(site)).toEqual([]);
    const pages = Object.entries(site).filter(([path]) => path.endsWith(".html"));
    const loads = pages.flatMap(([, html]) => [...String(html).matchAll(/ src="([^"]+)"/g)].map(([, src]) => src));
    expect(loads.filter((src) => /^[a-z]+:/.test(String(src)))).toEqual([]);
  });

  test("leads from a search to existing sections", () => {
    const found: string[] = [...String(site["search-index.js"]).matchAll(/\["([\w-]+\.html)#([^"]*)"/g)].flatMap(
      ([, page = "", id]) => (placesOf(page).has(id) ? [] : [`${page}#${id}`]),
    );
    expect(found).toEqual([]);
    expect(String(site["search-index.js"])).toContain('"errors.html#session-busy","session-busy","Errors"');
  });

  test("has every page as Markdown, and lists it for language models", () => {
    const names = Object.keys(site).flatMap((path) => (path.endsWith(".html") ? [path.slice(0, -5)] : []));
    // Except for the page for unknown addresses.
    names.splice(names.indexOf("404"), 1);
    expect(names.filter((name) => site[`${name}.md`] === undefined)).toEqual([]);
    expect(names.filter((name) => !String(site["llms.txt"]).includes(`(${name}.md)`))).toEqual([]);
  });
});

const index = String(site["search-index.js"]);
const find = openSearch(JSON.parse(index.replace(/^globalThis\.docsIndex = |;\n$/g, "")) as Row[]);
function firstOf(query: string, count: number) {
  return find(query)
    .slice(0, count)
    .map(({ href }) => href);
}

describe("the search of the documentation", () => {
  test.each([
    ["heartbeat", "agents.html#heartbeats"],
    ["timeout", "agents.html#timeouts"],
    ["retries", "agents.html#retries"],
    ["tool servers", "agents.html#tools"],
    ["MCP clients", "mcp.html#mcp-clients"],
    ["claude code", "mcp.html#claude-code"],
    ["cursor", "mcp.html#cursor"],
    ["skills", "agents.html#skills"],
    ["cost", "agents.html#usage-and-prices"],
    ["ollama", "agents.html#a-model-on-this-machine-ollama"],
    ["claude model", "agents.html#anthropic-with-another-model-to-fall-back-on"],
    ["pause an agent", "operations.html#pausing-an-agent"],
    ["logs", "operations.html#logs"],
    ["log level", "operations.html#logs"],
    ["metrics", "operations.html#metrics"],
    ["prometheus", "operations.html#dashboard-and-alerts"],
    ["otel", "operations.html#traces"],
    ["backup", "operations.html#backup"],
    ["upgrade", "operations.html#upgrade"],
    ["delete old data retention", "operations.html#retention"],
    ["docker", "deploying.html#with-docker-compose"],
    ["k8s", "deploying.html#on-kubernetes"],
    ["systemd", "deploying.html#with-systemd"],
    ["github webhook", "webhooks.html#github"],
    ["webhook signatures", "webhooks.html#signatures"],
    ["slack", "webhooks.html#slack"],
    ["websocket", "websocket.html#the-websocket"],
    ["console login", "console.html#signing-in"],
    ["port already in use", "troubleshooting.html#it-does-not-start"],
    ["how to send a message", "quickstart.html#4-send-a-message"],
    ["getting started", "quickstart.html#quickstart"],
    ["config file", "configuration.html#configuration"],
    ["install client", "sdks.html#install-a-client"],
    ["npm install client", "sdks.html#install-a-client"],
    ["pip install", "sdks.html#install-a-client"],
    ["resume stream", "websocket.html#resume-a-stream"],
    ["idempotency", "quickstart.html#7-send-it-again-safely-idempotency"],
    ["environment variables", "configuration.html#environment-variables"],
    ["async python", "sdks.html#python"],
  ])("leads from %j to the guide first", (query, href) => {
    expect(firstOf(query, 1)).toEqual([href]);
  });

  test.each([
    ["session-busy", "errors.html#session-busy"],
    ["chat.send", "rest.html#chat.send"],
    ["POST /hooks/agent", "hooks.html#hooks.agent"],
    ["usage.stats", "rpc.html#usage.stats"],
    ["message.delta", "pushes.html#message.delta"],
    ["-32601", "errors.html#method-not-found"],
  ])("leads from the name %j to its place in the reference", (name, href) => {
    expect(firstOf(name, 1)).toEqual([href]);
  });

  test("finds the same with another ending, another case, a typing error, and an extra word", () => {
    expect(firstOf("Streaming", 20)).toEqual(firstOf("streams", 20));
    expect(firstOf("kuberntes", 1)).toEqual(firstOf("kubernetes", 1));
    expect(firstOf("systemd zzzz", 1)).toEqual(firstOf("systemd", 1));
    expect(find("zzzz")).toEqual([]);
    expect(find(" the ")).toEqual([]);
  });
});

test("a link to a missing section is reported", () => {
  expect(
    brokenLinks({ "a.html": '<a href="b.html#x">', "b.html": '<p id="y">', "c.html": '<a href="d.html">' }),
  ).toEqual(["a.html: b.html has no place #x", "c.html: d.html leads nowhere"]);
});

test("the specs' prose is rendered as text, whatever it contains", () => {
  const { html } = render('# A\n\n<b onclick="x">&</b> and `<c>`', (href) => href);
  expect(html).not.toContain("<b");
  expect(html).toContain("<code>&lt;c&gt;</code>");
});

test("the workflow publishes the folder that `npm run docs` builds, with existing scripts", () => {
  const { jobs } = parse(readFileSync(join(root, ".github/workflows/docs.yml"), "utf8"));
  const steps = jobs.publish.steps as { run?: string; uses?: string; with?: { path?: string } }[];
  expect(steps.flatMap(({ run }) => run ?? [])).toEqual(["npm ci", "npm run docs"]);
  expect(manifest.scripts.docs).toBe("tsx scripts/docs.ts");
  const { path } = steps.find(({ uses }) => uses?.startsWith("actions/upload-pages-artifact"))?.with ?? {};
  expect(readFileSync(join(root, "scripts/docs.ts"), "utf8")).toContain(`buildDocs("${path}")`);
});
