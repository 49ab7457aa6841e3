import { Ajv2020 } from "ajv/dist/2020.js";
import { type Behaviour, startReceiver } from "#test/channels/receiver.ts";

export type Attributes = Record<string, string | number | boolean>;
export type SeenSpan = {
  traceId: string;
  spanId: string;
  parentSpanId: string | undefined;
  name: string;
  kind: number;
  from: bigint;
  to: bigint;
  attributes: Attributes;
  status: { code?: number; message?: string };
};

function exactly(properties: object, required: readonly string[] = Object.keys(properties)) {
  return {
    type: "object",
    properties,
    required,
    additionalProperties: false,
  };
}
const digits = { type: "string", pattern: "^[0-9]+$" };
const value = {
  oneOf: [
    exactly({ stringValue: { type: "string" } }),
    exactly({ intValue: { type: "string", pattern: "^-?[0-9]+$" } }),
    exactly({ doubleValue: { type: "number" } }),
    exactly({ boolValue: { type: "boolean" } }),
  ],
};
const attributes = { type: "array", items: exactly({ key: { type: "string", minLength: 1 }, value }) };
const span = exactly(
  {
    traceId: { type: "string", pattern: "^[0-9a-f]{32}$" },
    spanId: { type: "string", pattern: "^[0-9a-f]{16}$" },
    parentSpanId: { type: "string", pattern: "^[0-9a-f]{16}$" },
    name: { type: "string", minLength: 1 },
    kind: { enum: [1, 2, 3, 4, 5] },
    startTimeUnixNano: { ...digits, minLength: 19 },
    endTimeUnixNano: { ...digits, minLength: 19 },
    attributes,
    status: exactly({ code: { enum: [0, 1, 2] }, message: { type: "string" } }, []),
  },
  ["traceId", "spanId", "name", "kind", "startTimeUnixNano", "endTimeUnixNano", "attributes", "status"],
);
/** The JSON form of OTLP's `ExportTraceServiceRequest`, as far as the gateway uses it: 64-bit numbers are text, ids are hexadecimal. */
const request = exactly({
  resourceSpans: {
    type: "array",
    minItems: 1,
    items: exactly({
      resource: exactly({ attributes }),
      scopeSpans: {
        type: "array",
        items: exactly({
          scope: exactly({ name: { type: "string" }, version: { type: "string" } }),
          spans: { type: "array", minItems: 1, items: span },
        }),
      },
    }),
  },
});
const validate = new Ajv2020({ strict: false }).compile(request);

type SentSpan = Omit<SeenSpan, "from" | "to" | "attributes"> & {
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Pair[];
};
type Sent = { resourceSpans: [{ resource: { attributes: Pair[] }; scopeSpans: [{ spans: SentSpan[] }] }] };
type Pair = { key: string; value: Record<string, string | number | boolean> };
function read(pairs: readonly Pair[]): Attributes {
  return Object.fromEntries(
    pairs.map(({ key, value }) => {
      const [[type, held] = []] = Object.entries(value);
      return [key, type === "intValue" ? Number(held) : (held as string)];
    }),
  );
}

/** A stand-in for a collector, which validates each request against OTLP's schema and returns its spans. */
export async function startCollector(behave?: readonly Behaviour[]) {
  const receiver = await startReceiver(behave);
  const bodies = () =>
    receiver.requests.map(({ body, method, path, headers }) => {
      const sent: Sent = JSON.parse(String(body));
      if (!validate(sent)) throw new Error(`not as OTLP says: ${JSON.stringify(validate.errors)}`);
      return { method, path, headers, sent };
    });
  return {
    ...receiver,
    bodies,
    resource: () => read(bodies()[0]?.sent.resourceSpans[0].resource.attributes ?? []),
    spans: (): SeenSpan[] =>
      bodies().flatMap(({ sent }) =>
        sent.resourceSpans[0].scopeSpans[0].spans.map((one) => ({
          ...one,
          from: BigInt(one.startTimeUnixNano),
          to: BigInt(one.endTimeUnixNano),
          attributes: read(one.attributes),
        })),
      ),
    [Symbol.asyncDispose]: receiver[Symbol.asyncDispose],
  };
}
