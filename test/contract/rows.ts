import { readFileSync } from "node:fs";
import { parse } from "yaml";

export type Shape = {
  type: string;
  items?: string;
  required?: true;
  accepts?: unknown[];
  refuses?: unknown[];
  default?: unknown;
};

type Rows = {
  operations: { operation: string; media?: string }[];
  bodyFields: (Shape & { operation: string; field: string })[];
  replyFields: (Shape & { operation: string; status: number; field: string })[];
  statuses: { operation: string; status: number; errors?: string[] }[];
  tokens: { operation: string; as: string }[];
  rpcPaths: { file: string; path: string }[];
  envelopes: (Shape & { shape: string; field: string })[];
  methods: { method: string }[];
  params: (Shape & { method: string; param: string })[];
  results: (Shape & { method: string; field: string })[];
  config: (Shape & { key: string })[];
  errors: { error: string; code?: number; status?: number; methods?: string[] | "all" }[];
  pushes: { push: string; because: string }[];
};

/** The requirements of the public interface, row by row. */
export const rows: Rows = parse(readFileSync(new URL("interface-rows.yaml", import.meta.url), "utf8"));
