import { paragraphs } from "./words.ts";

/** One operation, method or push. */
export type Entry = {
  id: string;
  title: string;
  summary: string;
  content: string;
  /** Requests and answers, each a paragraph of text, if there is any, and code. */
  samples: readonly string[];
  errors: readonly string[];
};
export type Group = { name: string; title: string; intro: string; entries: readonly Entry[] };

/** A group as a part of a page. Each entry is a section with its own address. */
export function groupOf({ name, title, intro, entries }: Group): string {
  const [first, ...others] = entries.map(({ errors }) => errors);
  const common =
    others.length === 0 ? [] : (first ?? []).filter((error) => others.every((errors) => errors.includes(error)));
  return paragraphs(
    `## ${title[0]?.toUpperCase()}${title.slice(1)} {#of-${name}}`,
    intro,
    common.length === 0 ? "" : `Each of these can answer with ${linksOf(common)}.`,
    ...entries.map((entry) => entryOf(entry, common)),
  );
}

function entryOf({ id, title, summary, content, samples, errors }: Entry, common: readonly string[]): string {
  const own = errors.filter((name) => !common.includes(name));
  return paragraphs(
    `### ${title} {#${id}}`,
    summary === "" ? "" : `**${summary}.**`,
    content,
    own.length === 0 ? "" : `#### Errors\n\n${linksOf(own)}`,
    ...(samples.length === 0 ? [] : ["#### Examples", ...samples]),
  );
}

function linksOf(names: readonly string[]): string {
  return names.map((name) => `[${name}](errors.html#${name})`).join(", ");
}
