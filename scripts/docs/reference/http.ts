import type { Bundle } from "../../generate/bundle.ts";
import { isObject, type Json, type JsonObject, list, object, text, texts } from "../../generate/json.ts";
import type { SdkDescription } from "../../generate/sdk/description.ts";
import { contentOf, type Field, fieldList, resolve, type Shapes } from "./fields.ts";
import type { Entry, Group } from "./groups.ts";
import { openAiTabs, tabs, tokenOf } from "./samples.ts";
import { block, code, paragraphs, pretty } from "./words.ts";

const METHODS = ["get", "post", "put", "patch", "delete"];

const OPENAI_CLIENT =
  "In the code `client` is OpenAI's own client, with the base URL and the key of this gateway: see [OpenAI-compatible clients](openai.html).";

/** The operations of openapi.yaml, grouped by their tags. */
export function httpGroups({ document, components }: Bundle, sdk: SdkDescription): Group[] {
  const all: Shapes = { prefix: "http", shapes: components.schemas ?? {} };
  const follow = (node: Json | undefined): JsonObject => {
    const [, home = "", name = ""] = /^#\/components\/(\w+)\/(.+)$/.exec(text(object(node).$ref)) ?? [];
    return home === "" ? object(node) : follow(components[home]?.[name]);
  };
  // Announcements go to the address that the receiver configured.
  const sent = Object.values(object(document.webhooks)).map((item): [string, Json] => ["", item]);
  const entries = [...Object.entries(object(document.paths)), ...sent].flatMap(([path, item]) =>
    Object.entries(object(item)).flatMap(([method, node]) => {
      if (!METHODS.includes(method) || !isObject(node)) return [];
      const parameters = [...list(object(item).parameters), ...list(node.parameters)].map(follow);
      return [{ tag: texts(node.tags)[0] ?? "", entry: entryOf(method, path, node, parameters) }];
    }),
  );
  const tags = list(document.tags).map(object);
  return tags.map(({ name, description }) => ({
    name: text(name),
    title: text(name),
    intro: paragraphs(text(description), text(name) === "openai" ? OPENAI_CLIENT : ""),
    entries: entries.filter(({ tag }) => tag === name).map(({ entry }) => entry),
  }));

  function entryOf(method: string, path: string, node: JsonObject, parameters: JsonObject[]): Entry {
    const id = text(node.operationId);
    const body = follow(node.requestBody);
    const replies = successesOf(node);
    const isSent = path === "";
    return {
      id,
      title: isSent ? text(node.summary) : `${method.toUpperCase()} ${path}`,
      summary: isSent ? "" : text(node.summary),
      content: paragraphs(
        isSent ? "" : `${code(id)}. ${accessOf(node)}.`,
        text(node.description),
        ...parametersOf(parameters),
        ...Object.values(object(body.content)).flatMap((media) => [
          "#### Body",
          contentOf(object(object(media).schema), all, true),
        ]),
        ...replies.map(({ status, description, schemas, links }) =>
          paragraphs(
            `#### ${status}`,
            description,
            ...schemas.map((schema) => contentOf(schema, all)),
            links.length === 0 ? "" : `Continue with ${links.map((to) => `[${to}](rest.html#${to})`).join(", ")}.`,
          ),
        ),
      ),
      samples: isSent ? examplesOf(body).map(({ value }) => block("json", pretty(value))) : samplesOf(),
      errors: texts(node["x-errors"]),
    };

    function samplesOf(): string[] {
      const calls = sdk.rest.calls.filter(({ contract }) => contract === id);
      const token = tokenOf(calls[0] ?? { token: list(node.security).length === 0 ? "none" : "rest" });
      const at = { path: valuesIn("path", parameters), query: valuesIn("query", parameters) };
      const given = examplesOf(body);
      const requests = (given.length > 0 ? given : [{ summary: "", value: undefined }]).map(({ summary, value }) => {
        const isStream = object(value).stream === true || calls[0]?.kind === "stream";
        const request = { method: method.toUpperCase(), at: path, ...at, body: value, token, isStream };
        const isOpenAi = path.startsWith("/v1");
        return paragraphs(summary, isOpenAi ? openAiTabs(id, request) : tabs(calls, request, sdk));
      });
      const answers = replies.flatMap(({ status, examples }) =>
        examples.slice(0, 1).map(({ type, value }) => {
          return paragraphs(`Answer ${code(status)}`, block(type.endsWith("json") ? "json" : "http", pretty(value)));
        }),
      );
      return [...requests, ...answers.slice(0, 2)];
    }
  }

  /** The values of required parameters, from the contract's own examples. */
  function valuesIn(place: string, parameters: JsonObject[]): Record<string, Json> {
    return Object.fromEntries(
      parameters
        .filter((one) => one.in === place && one.required === true)
        .map((one) => [text(one.name), one.example ?? list(resolve(object(one.schema), all).examples)[0] ?? "…"]),
    );
  }

  function parametersOf(parameters: JsonObject[]): string[] {
    const fields = parameters.map(({ name, required, schema, description }): Field => {
      return { name: text(name), required: required === true, schema: object(schema), description: text(description) };
    });
    return fields.length === 0 ? [] : ["#### Parameters", fieldList(fields, all, true)];
  }

  function examplesOf({ content }: JsonObject): { type: string; summary: string; value: Json }[] {
    return Object.entries(object(content)).flatMap(([type, media]) =>
      Object.values(object(object(media).examples)).map((node) => {
        const { summary, value = null } = follow(node);
        return { type, summary: text(summary), value };
      }),
    );
  }

  function successesOf({ operationId, responses }: JsonObject) {
    const good = Object.entries(object(responses)).filter(([status]) => Number(status) < 400);
    return good.map(([status, node]) => {
      const reply = follow(node);
      return {
        status,
        description: text(reply.description),
        schemas: Object.values(object(reply.content)).map((media) => object(object(media).schema)),
        examples: examplesOf(reply),
        links: [...new Set(Object.values(object(reply.links)).map((link) => text(follow(link).operationId)))].filter(
          (to) => to !== text(operationId),
        ),
      };
    });
  }
}

function accessOf({ security, ...node }: JsonObject): string {
  const schemes = list(security).flatMap((one) => Object.keys(object(one)));
  const scope = text(node["x-scope"]);
  return [
    schemes.length === 0
      ? "Public"
      : `Takes ${schemes.map((name) => `[${name}](authentication.html#${name})`).join(" or ")}`,
    ...(scope === "" ? [] : [`scope ${code(scope)}`]),
    ...(node["x-idempotent"] === true ? ["`Idempotency-Key` is honoured"] : []),
  ].join(", ");
}

/** The authentication of a caller, on every surface over HTTP. */
export function authenticationOf({ components }: Bundle): string {
  return Object.entries(components.securitySchemes ?? {})
    .map(([id, node]) => {
      const { type, name, description } = object(node);
      const header = type === "apiKey" ? `${text(name)}: …` : "Authorization: Bearer …";
      return paragraphs(`### ${id} {#${id}}`, code(header), text(description));
    })
    .join("\n\n");
}
