import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { errors } from "#generated/errors.ts";
import { methods } from "#generated/methods.ts";
import { routes } from "#generated/routes.ts";
import { root } from "#test/harness/process.ts";
import manifest from "../../package.json" with { type: "json" };
import { brokenLinks } from "../../scripts/docs/links.ts";
import { render } from "../../scripts/docs/markdown.ts";
import { buildSite } from "../../scripts/docs/site.ts";
import { readContract } from "../../scripts/generate/code.ts";

const site = buildSite(readContract("specs"));
const placesOf = (...pages: string[]) =>
  new Set(pages.flatMap((page) => [...String(site[page]).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id)));

describe("the documentation", () => {
  test("has a place for each operation, method and error", () => {
    const http = placesOf("rest.html", "hooks.html");
    expect(routes.map(({ operation }) => operation).filter((id) => !http.has(id))).toEqual([]);
    expect(Object.keys(methods).filter((name) => !placesOf("rpc.html").has(name))).toEqual([]);
    expect(Object.keys(errors).filter((name) => !placesOf("errors.html").has(name))).toEqual([]);
  });

  test("says of each error what to do", () => {
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

  test("has no link that leads nowhere, and loads nothing from elsewhere", () => {
    expect(brokenLinks(site)).toEqual([]);
    const pages = Object.entries(site).filter(([path]) => path.endsWith(".html"));
    const loads = pages.flatMap(([, html]) => [...String(html).matchAll(/ src="([^"]+)"/g)].map(([, src]) => src));
    expect(loads.filter((src) => /^[a-z]+:/.test(String(src)))).toEqual([]);
  });

  test("leads from a search to places that are there", () => {
    const found: string[] = [...String(site["search-index.js"]).matchAll(/\["([\w-]+\.html)#([^"]*)"/g)].flatMap(
      ([, page = "", id]) => (placesOf(page).has(id) ? [] : [`${page}#${id}`]),
    );
    expect(found).toEqual([]);
    expect(String(site["search-index.js"])).toContain('"errors.html#session-busy","session-busy","Errors"');
  });

  test("has every page as Markdown, and lists it for language models", () => {
    const names = Object.keys(site).flatMap((path) => (path.endsWith(".html") ? [path.slice(0, -5)] : []));
    expect(names.filter((name) => site[`${name}.md`] === undefined)).toEqual([]);
    expect(names.filter((name) => !String(site["llms.txt"]).includes(`(${name}.md)`))).toEqual([]);
  });
});

test("a link to a place that is not there is told", () => {
  expect(
    brokenLinks({ "a.html": '<a href="b.html#x">', "b.html": '<p id="y">', "c.html": '<a href="d.html">' }),
  ).toEqual(["a.html: b.html has no place #x", "c.html: d.html leads nowhere"]);
});

test("words of the specs are text, whatever they hold", () => {
  const { html } = render('# A\n\n<b onclick="x">&</b> and `<c>`', (href) => href);
  expect(html).not.toContain("<b");
  expect(html).toContain("<code>&lt;c&gt;</code>");
});

test("the workflow publishes the folder that `npm run docs` builds, by scripts that are there", () => {
  const { jobs } = parse(readFileSync(join(root, ".github/workflows/docs.yml"), "utf8"));
  const steps = jobs.publish.steps as { run?: string; uses?: string; with?: { path?: string } }[];
  expect(steps.flatMap(({ run }) => run ?? [])).toEqual(["npm ci", "npm run docs"]);
  expect(manifest.scripts.docs).toBe("tsx scripts/docs.ts");
  const { path } = steps.find(({ uses }) => uses?.startsWith("actions/upload-pages-artifact"))?.with ?? {};
  expect(readFileSync(join(root, "scripts/docs.ts"), "utf8")).toContain(`buildDocs("${path}")`);
});
