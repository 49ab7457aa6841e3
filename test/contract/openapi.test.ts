import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import { describe, expect, test } from "vitest";
import { entriesOf, get, keysOf, type Node, readSpec, text, whole } from "./spec.ts";

const openapi = readSpec("openapi.yaml");
const errors = get(readSpec("errors.yaml"), "errors");
/** OpenAI's names for our errors; the other names are ours with `_` instead of `-`. */
const openAiCodes: Record<string, string> = {
  "agent-not-found": "model_not_found",
  unauthenticated: "invalid_api_key",
  "rate-limited": "rate_limit_exceeded",
  "budget-exceeded": "insufficient_quota",
};
const ajv = new Ajv2020({ strict: false });
const compiled = new Map<string, ValidateFunction>();
/** Many replies have one schema, which takes long to compile. */
function validatorFor(schema: Node): ValidateFunction {
  const text = JSON.stringify(whole(schema));
  const validate = compiled.get(text) ?? ajv.compile(JSON.parse(text) as object);
  compiled.set(text, validate);
  return validate;
}

const operations = keysOf(get(openapi, "paths")).flatMap((path) =>
  keysOf(get(openapi, "paths", path)).map((method) => {
    const operation = get(openapi, "paths", path, method) as Node;
    return { id: text(get(operation, "operationId")), surface: text(get(operation, "x-surface")), operation };
  }),
);

type Example = { status: string; type: string; name: string; value: unknown; validate: ValidateFunction };

function examplesOf(message: Node | undefined, status: string): Example[] {
  return keysOf(get(message, "content")).flatMap((type) => {
    const media = get(message, "content", type);
    const validate = validatorFor(get(media, "schema") as Node);
    const named = get(media, "examples");
    return keysOf(named).map((name) => ({ status, type, name, value: get(named, name, "value")?.value, validate }));
  });
}
function answersOf(operation: Node) {
  return keysOf(get(operation, "responses")).flatMap((status) =>
    examplesOf(get(operation, "responses", status), status),
  );
}

describe.each(operations)("$id", ({ surface, operation }) => {
  const answers = answersOf(operation);
  const isProblem = ({ status, type }: Example) =>
    type === "application/problem+json" || (surface === "openai" && Number(status) >= 400);
  const named = entriesOf(get(operation, "x-errors")).map(text);

  test("has an example of each of its problems, and of no other", () => {
    const expected = named.map((name) => `${get(errors, name, "status")?.value} ${name}`);
    const shown = answers.filter(isProblem).map(({ status, name }) => `${status} ${name}`);
    // A refusal from before the head was read has two formats under /v1.
    expect([...new Set(shown)].toSorted()).toEqual(expected.toSorted());
  });

  test("has problems that match the error table", () => {
    for (const { name, status, type: media, value } of answers.filter(isProblem)) {
      const row = get(errors, name);
      if (media === "application/json") {
        const { message, code, turn_id } = (value as { error: Record<string, string> }).error;
        expect(message?.startsWith(text(get(row, "title")))).toBe(true);
        expect(openAiCodes[name] ?? name.replaceAll("-", "_")).toBe(code);
        expect(Number(status)).toBe(get(row, "status")?.value);
        expect(turn_id !== undefined).toBe(/^turn-|^agent-removed/.test(name));
        continue;
      }
      const type = `/docs/errors.html#${name}`;
      expect(value).toMatchObject({ type, title: text(get(row, "title")), status: Number(status) });
      expect(value instanceof Object && "retry_after_ms" in value, `${name} says when to try again`).toBe(
        get(row, "retry")?.value === true,
      );
    }
  });

  test("has the time of a retry if a retry can help", () => {
    for (const name of named.filter((error) => get(errors, error, "retry")?.value === true)) {
      const status = String(get(errors, name, "status")?.value);
      expect(keysOf(get(operation, "responses", status, "headers")), `the headers of ${status}`).toContain(
        "Retry-After",
      );
    }
  });

  test("has an example of every answer, and its examples match its schemas", () => {
    const shown = new Set(answers.map(({ status, type }) => `${status} ${type}`));
    for (const status of keysOf(get(operation, "responses"))) {
      for (const type of keysOf(get(operation, "responses", status, "content")))
        expect(shown).toContain(`${status} ${type}`);
    }
    const requests = examplesOf(get(operation, "requestBody"), "the request");
    expect(requests.length > 0).toBe(get(operation, "requestBody") !== undefined);
    for (const { status, type, name, value, validate } of [...requests, ...answers]) {
      expect(validate(value), `${status} ${type} ${name}: ${ajv.errorsText(validate.errors)}`).toBe(true);
    }
  });

  test("refuses unknown fields of its body, unless the body has the format of another service", () => {
    const body = get(operation, "requestBody", "content", "application/json", "schema");
    const closed = get(body, "additionalProperties")?.value === false;
    const id = text(get(operation, "operationId"));
    // Clients of OpenAI send fields of other servers, and its contract grows independently of us.
    const isStrangers = ["hooks.mapped", "hooks.mappedByName", "completions.create"].includes(id);
    expect(closed).toBe(body !== undefined && !isStrangers);
  });
});

const pushes = get(readSpec("pushes.yaml"), "components", "messages");
/** Turns have their own data: the time of the end, an error without a title. */
const notified = keysOf(get(openapi, "webhooks")).filter((name) => get(pushes, name) && !name.startsWith("turn."));

test.each(notified)("the notification %s has the data of the push, with its schemas", (name) => {
  const body = get(openapi, "webhooks", name, "post", "requestBody", "content", "application/json", "schema");
  const data = get(body, "properties", "data", "properties");
  const pushed = get(pushes, name, "payload", "properties");
  expect(["seq", "cursor", "at", ...keysOf(data)]).toEqual(keysOf(pushed));
  for (const field of keysOf(data)) expect(whole(get(data, field) as Node)).toEqual(whole(get(pushed, field) as Node));
});

describe.each(keysOf(get(openapi, "webhooks")))("the content: %s", (name) => {
  const sent = get(openapi, "webhooks", name, "post");

  test("has examples that match its schema", () => {
    const examples = examplesOf(get(sent, "requestBody"), "the request");
    expect(examples.length).toBeGreaterThan(0);
    for (const { name: example, value, validate } of examples)
      expect(validate(value), `${example}: ${ajv.errorsText(validate.errors)}`).toBe(true);
  });

  test("has a name for each of its headers, and a format", () => {
    for (const parameter of entriesOf(get(sent, "parameters"))) {
      expect(text(get(parameter, "in"))).toBe("header");
      expect(get(parameter, "schema", "type")).toBeDefined();
    }
  });
});

describe("a delivery's timeline", () => {
  const step = get(readSpec("schemas/timeline.yaml"), "TimelineStep", "properties", "name");
  const names = entriesOf(get(step, "enum")).map(text);

  test("has a description of each of its steps, and of no other", () => {
    const told = [...text(get(step, "description")).matchAll(/`([a-z-]+\.[a-z-]+)`/g)].map(([, name]) => name);
    expect(told.filter((name) => !name?.startsWith("recorder.")).toSorted()).toEqual(names.toSorted());
  });

  test("is shown in examples that end in a valid way", () => {
    const read = operations.find(({ id }) => id === "deliveries.get")?.operation as Node;
    const shown = answersOf(read).filter(({ status }) => status === "200");
    for (const { name, value } of shown) {
      const { outcome, at, timeline } = value as {
        outcome: string;
        at: string;
        timeline: { at: string; name: string }[];
      };
      expect(
        timeline.map((entry) => entry.name),
        name,
      ).toEqual(expect.arrayContaining([expect.stringMatching(`\\.${outcome}$`)]));
      expect(
        timeline.map((entry) => entry.at),
        name,
      ).toEqual(timeline.map((entry) => entry.at).toSorted());
      expect(timeline[0]?.at).toBe(at);
    }
  });
});

describe("event streams", () => {
  const validatorOf = (file: string, name: string) => validatorFor(get(readSpec(file), name) as Node);
  const validate = validatorOf("schemas/turn-events.yaml", "TurnEvent");
  const streamsOf = (wanted: (surface: string) => boolean) =>
    operations
      .filter(({ surface }) => wanted(surface))
      .flatMap(({ id, operation }) =>
        answersOf(operation)
          .filter(({ type }) => type === "text/event-stream")
          .map(({ name, value }) => ({ id, name, value: String(value) })),
      );
  const streams = streamsOf((surface) => surface !== "openai");

  test.each(streams)("$id: the stream $name has TurnEvents, and ends", ({ value }) => {
    const events = value.split("\n\n").slice(0, -1).map(readEvent);
    expect(value.endsWith("\n\n")).toBe(true);
    for (const event of events)
      expect(validate(event), `${JSON.stringify(event)}: ${ajv.errorsText(validate.errors)}`).toBe(true);
    expect(events.at(-1)?.event).toMatch(/^turn\.(completed|failed|cancelled)$/);
  });

  test.each(streamsOf((surface) => surface === "openai"))(
    "$id: the stream $name holds chunks, and ends",
    ({ value }) => {
      const [isChunk, isError] = ["ChatCompletionChunk", "OpenAiError"].map((shape) =>
        validatorOf("openai/schemas.yaml", shape),
      ) as [ValidateFunction, ValidateFunction];
      expect(value.endsWith("\n\n")).toBe(true);
      const events = value.split("\n\n").slice(0, -1);
      const last = events.pop() as string;
      for (const event of events)
        expect(isChunk(JSON.parse(event.replace(/^data: /, ""))), `${event}: ${ajv.errorsText(isChunk.errors)}`).toBe(
          true,
        );
      if (last !== "data: [DONE]")
        expect(isError(JSON.parse(last.replace(/^data: /, ""))), ajv.errorsText(isError.errors)).toBe(true);
    },
  );
});

function readEvent(lines: string) {
  const fields = Object.fromEntries(lines.split("\n").map((line) => line.split(/: (.*)/s, 2)));
  return { event: String(fields.event), id: fields.id, data: JSON.parse(String(fields.data)) as unknown };
}
