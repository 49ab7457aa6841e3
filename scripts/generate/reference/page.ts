import type { Bundle } from "../bundle.ts";
import { configurationSections, headingOf } from "../configuration.ts";
import type { ErrorRows } from "../errors.ts";
import { type JsonObject, object, text } from "../json.ts";
import { header, type Output } from "../output.ts";
import type { Push } from "../push-types.ts";
import { authFields, httpGroups } from "./http.ts";
import { pushGroup, rpcGroup } from "./rpc.ts";
import { shapeSections } from "./shapes.ts";
import { style } from "./style.ts";
import { code, escapeHtml, inline, prose } from "./words.ts";

/** One operation, method or push. */
export type Entry = {
  id: string;
  title: string;
  heading: string;
  summary: string;
  content: string;
  errors: readonly string[];
};
export type Group = { title: string; intro: string; entries: readonly Entry[] };

export type ReferenceParts = {
  openapi: Bundle;
  openrpc: Bundle;
  asyncapi: Bundle;
  errors: ErrorRows;
  pushes: readonly Push[];
  socketCalls: readonly Push[];
  /** The schema of the configuration. */
  config: JsonObject;
};

/** The reference of the whole contract: one page without scripts that asks for nothing else. */
export const printReference = (parts: ReferenceParts): Output => {
  const html = pageOf(parts).replaceAll("\\", "\\\\").replaceAll("`", "\\`").replaceAll("${", "\\${");
  const from = header("openapi.yaml", "openrpc.json", "pushes.yaml", "errors.yaml", "config.schema.yaml");
  return {
    "reference.js": `${from}\nexport const reference = \`${html}\`;\n`,
    "reference.d.ts": `${from}\nexport declare const reference: string;\n`,
  };
};

const pageOf = ({ openapi, openrpc, asyncapi, errors, pushes, socketCalls, config }: ReferenceParts): string => {
  const { title, version, description } = object(openapi.document.info);
  const name = text(title).split(",")[0] as string;
  const groups = [...httpGroups(openapi), rpcGroup(openrpc), pushGroup(asyncapi, pushes, socketCalls)];
  const calls = groups.map(groupOf).join("\n");
  const shapesOf = (prefix: string, { components }: Bundle) =>
    shapeSections({ prefix, shapes: components.schemas ?? {} }, calls);
  const shapes = [
    ["Shapes of REST and webhooks", shapesOf("http", openapi)],
    ["Shapes of RPC", shapesOf("rpc", openrpc)],
    ["Shapes of pushes", shapesOf("push", asyncapi)],
  ] as const;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(name)} reference</title>
<style>${style}</style>
</head>
<body>
<a class="skip" href="#about">To the content</a>
<input type="checkbox" id="contents"><label for="contents">Contents</label>
<nav aria-label="Contents">
<a href="#about">About</a>
<a href="#authentication">Authentication</a>
${groups.map(navOf).join("\n")}
<a href="#errors">Errors</a>
<a href="#configuration">Configuration</a>
${shapes.map(([title]) => `<a href="#${anchorOf(title)}">${title}</a>`).join("\n")}
</nav>
<main>
<h1>${escapeHtml(name)}</h1>
<section id="about">
<p class="who">Version ${escapeHtml(text(version))} · <a href="/openapi.json">openapi.json</a> · <a href="/openrpc.json">openrpc.json</a></p>
<p>All that the gateway promises to its callers: REST and webhooks, JSON-RPC, and what the WebSocket pushes.</p>
<h2>REST and webhooks</h2>
${prose(text(description))}
</section>
<section id="authentication">
<h2>Authentication</h2>
${authFields(openapi)}
</section>
${calls}
<section id="errors">
<h2>Errors</h2>
<p>The name is the last part of a problem's <code>type</code>, and <code>data.name</code> of an RPC error.</p>
${errorRows(errors)}
</section>
<section id="configuration">
<h2>Configuration</h2>
<p>Every key of the configuration file. <code>docs/configuration.md</code> has the same with an example.</p>
${configurationRows(config)}
</section>
${shapes.map(([title, sections]) => `<h2 id="${anchorOf(title)}">${title}</h2>\n${sections.join("\n")}`).join("\n")}
</main>
</body>
</html>
`;
};

const anchorOf = (title: string): string => `of-${title.toLowerCase().replaceAll(/[^a-z]+/g, "-")}`;

const navOf = ({ title, entries }: Group): string =>
  `<b><a href="#${anchorOf(title)}">${escapeHtml(title)}</a></b>
${entries.map(({ id, title }) => `<a href="#${id}">${escapeHtml(title)}</a>`).join("\n")}`;

const groupOf = ({ title, intro, entries }: Group): string => {
  const [first, ...others] = entries.map(({ errors }) => errors);
  const common =
    others.length === 0 ? [] : (first ?? []).filter((name) => others.every((names) => names.includes(name)));
  return `<h2 id="${anchorOf(title)}">${escapeHtml(title)}</h2>
${intro}
${common.length === 0 ? "" : `<p>Each of these can answer with ${linksOf(common)}.</p>`}
${entries.map((entry) => entryOf(entry, common)).join("\n")}`;
};

const entryOf = ({ id, heading, summary, content, errors }: Entry, common: readonly string[]): string =>
  `<section id="${id}">
<h3><a href="#${id}">${heading}</a></h3>
${summary === "" ? "" : `<p class="summary">${inline(summary)}</p>`}
${content}
${errorsOf(errors, common)}
</section>`;

/** The errors of an entry beside those of its group, each leading to what it means. */
const errorsOf = (names: readonly string[], common: readonly string[]): string => {
  const own = names.filter((name) => !common.includes(name));
  return own.length === 0 ? "" : `<h4>Errors</h4>\n<p class="errors">${linksOf(own)}</p>`;
};

const linksOf = (names: readonly string[]): string =>
  names.map((name) => `<a href="#error-${name}">${name}</a>`).join(", ");

const configurationRows = (config: JsonObject): string =>
  configurationSections(config)
    .map(({ title, about, rows }) => {
      const keys = rows.map(({ key, type, default: usual, restart, about: what, example }) => {
        const isNeeded = usual.startsWith("required");
        const facts = [type, isNeeded || usual === "" ? usual : `default ${usual}`, restart ? "needs a restart" : ""];
        const more = example === "" ? "" : ` For example ${example}.`;
        return `<dt>${code(key)} <i>${inline(facts.filter(Boolean).join(" · "))}</i></dt><dd>${inline(what + more)}</dd>`;
      });
      return `<h3>${inline(headingOf(title))}</h3>\n<p>${inline(about)}</p>\n<dl>\n${keys.join("\n")}\n</dl>`;
    })
    .join("\n");

const errorRows = (errors: ErrorRows): string => {
  const rows = Object.entries(errors).map(([name, { code: rpc, status, title, meaning, retry }]) => {
    const codes = [`HTTP ${status}`, ...(rpc === null ? [] : [`RPC ${rpc}`]), ...(retry ? ["may be tried again"] : [])];
    return `<dt id="error-${name}">${code(name)} <i>${codes.join(" · ")}</i></dt><dd>${inline(title)}. ${inline(meaning)}</dd>`;
  });
  return `<dl>\n${rows.join("\n")}\n</dl>`;
};
