import type { Site } from "./site.ts";

/** The broken links of a site: to a missing file, or to a missing section of a page. */
export function brokenLinks(site: Site): string[] {
  const pages = Object.entries(site).filter(([path]) => path.endsWith(".html"));
  const places = new Map(
    pages.map(([path, html]) => [path, new Set([...String(html).matchAll(/ id="([^"]+)"/g)].map(([, id]) => id))]),
  );
  return pages.flatMap(([path, html]) =>
    [...String(html).matchAll(/ (?:href|src)="([^"]+)"/g)].flatMap(([, link = ""]) => {
      if (/^[a-z]+:/.test(link)) return [];
      const [file = "", anchor] = link.split("#");
      const target = file === "" ? path : file;
      if (site[target] === undefined && target !== "site.js") return [`${path}: ${link} leads nowhere`];
      if (anchor === undefined || places.get(target)?.has(anchor)) return [];
      return [`${path}: ${target} has no place #${anchor}`];
    }),
  );
}
