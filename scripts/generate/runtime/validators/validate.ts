/** One fault, as Ajv describes it. */
export interface ValidationError {
  /** A JSON pointer to what is wrong. */
  instancePath: string;
  schemaPath: string;
  /** The keyword that it does not keep, such as `required` or `pattern`. */
  keyword: string;
  params: Record<string, unknown>;
  message?: string;
}

/** Says whether a value keeps its schema. The faults of the last call are in `errors`: read them before the next one. */
export type Validate = ((value: unknown) => boolean) & { errors?: null | ValidationError[] };
