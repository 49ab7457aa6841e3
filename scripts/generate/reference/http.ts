import type { Bundle } from "../bundle.ts";
import { isObject, type Json, type JsonObject, list, object, text, texts } from "../json.ts";
import type { Entry, Group } from "./page.ts";
import { contentOf, type Field, fieldList, type Shapes } from "./shapes.ts";
import { code, inline, pretty, prose, sample } from "./words.ts";

const METHODS = ["get", "post", "put", "patch", "delete"];

/** The operations of openapi.yaml, a group for each of its tags. */
export const httpGroups = ({ document, components }: Bundle): Group[] => {
  const all: Shapes = { prefix: "http", shapes: components.schemas ?? {} };
  const follow = (node: Json | undefined): JsonObject => {
    const [, home = "", name = ""] = /^#\/components\/(\w+)\/(.+)$/.exec(text(object(node).$ref)) ?? [];
    return home === "" ? object(node) : follow(components[home]?.[name]);
  };
  // Announcements go to the address that the receiver configured.
  const sent = Object.values(object(document.webhooks)).map((item): [string, Json] => ["{channel}", item]);
  const entries = [...Object.entries(object(document.paths)), ...sent].flatMap(([path, item]) =>
    Object.entries(object(item)).flatMap(([method, node]) => {
      if (!METHODS.includes(method) || !isObject(node)) return [];
      const parameters = [...list(object(item).parameters), ...list(node.parameters)].map(follow);
      return [{ tag: texts(node.tags)[0] ?? "", entry: entryOf(method, path, node, parameters) }];
    }),
  );
  const tags = list(document.tags).map(object);
  const names = new Set([...tags.map(({ name }) => text(name)), ...entries.map(({ tag }) => tag)]);
  return [...names].map((tag) => ({
    title: tag === "" ? "operations" : tag,
    intro: prose(text(tags.find(({ name }) => name === tag)?.description)),
    entries: entries.filter((one) => one.tag === tag).map(({ entry }) => entry),
  }));

  function entryOf(method: string, path: string, node: JsonObject, parameters: JsonObject[]): Entry {
    const id = text(node.operationId);
    const place = `${method.toUpperCase()} ${path}`;
    const body = follow(node.requestBody);
    return {
      id,
      title: place,
      heading: `<code class="verb">${method.toUpperCase()}</code> ${code(path)}`,
      summary: text(node.summary),
      content: [
        `<p class="who">${code(id)} ${whoMay(node)}</p>`,
        prose(text(node.description)),
        ...parametersOf(parameters),
        ...bodyOf(place, body),
        ...repliesOf(node),
      ].join("\n"),
      errors: texts(node["x-errors"]),
    };
  }

  function parametersOf(parameters: JsonObject[]): string[] {
    const fields = parameters.map(({ name, required, schema, description }): Field => {
      return { name: text(name), required: required === true, schema: object(schema), description: text(description) };
    });
    return fields.length === 0 ? [] : ["<h4>Parameters</h4>", fieldList(fields, all, true)];
  }

  function bodyOf(place: string, { content }: JsonObject): string[] {
    return Object.entries(object(content)).flatMap(([type, media]) => [
      `<h4>Body <i>${type}</i></h4>`,
      contentOf(object(object(media).schema), all, true),
      ...samplesOf(object(media), (value) => `${place}\n\n${pretty(value)}`),
    ]);
  }

  function repliesOf({ responses }: JsonObject): string[] {
    const good = Object.entries(object(responses)).filter(([status]) => Number(status) < 400);
    return good.flatMap(([status, node]) => {
      const { description, content } = follow(node);
      return [
        `<h4>${status}</h4>`,
        `<p>${inline(text(description))}</p>`,
        ...Object.entries(object(content)).flatMap(([type, media]) => [
          `<p class="type">${type}</p>`,
          contentOf(object(object(media).schema), all),
          ...samplesOf(object(media), pretty),
        ]),
      ];
    });
  }

  function samplesOf({ examples }: JsonObject, show: (value: Json | undefined) => string): string[] {
    return Object.values(object(examples)).map((node) => {
      const { summary, value } = follow(node);
      return sample(text(summary), show(value));
    });
  }
};

const whoMay = ({ security, ...node }: JsonObject): string => {
  const schemes = list(security).flatMap((one) => Object.keys(object(one)));
  const scope = text(node["x-scope"]);
  const notes = [
    schemes.length === 0 ? "public" : schemes.map((name) => `<a href="#auth-${name}">${name}</a>`).join(" or "),
    ...(scope === "" ? [] : [`scope ${code(scope)}`]),
    ...(node["x-idempotent"] === true ? ["takes <code>Idempotency-Key</code>"] : []),
  ];
  return notes.join(" · ");
};

/** How a caller shows who it is, on every surface that takes HTTP. */
export const authFields = ({ components }: Bundle): string => {
  const rows = Object.entries(components.securitySchemes ?? {}).map(([id, node]) => {
    const { type, name, description } = object(node);
    const header = type === "apiKey" ? text(name) : "Authorization: Bearer …";
    return `<dt id="auth-${id}">${code(id)} <i>${code(header)}</i></dt><dd>${inline(text(description))}</dd>`;
  });
  return `<dl>${rows.join("\n")}</dl>`;
};
