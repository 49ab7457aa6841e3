/** One step of a trace. Times are Unix times in milliseconds; an attribute without a value is left out. */
export type Span = {
  traceId: string;
  spanId: string;
  parentId: string | undefined;
  name: string;
  kind: "internal" | "server" | "client";
  from: number;
  to: number;
  attributes: Readonly<Record<string, string | number | boolean | undefined>>;
  /** The reason of a failure. */
  failure: string | undefined;
};
