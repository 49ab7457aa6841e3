import { readFileSync } from "node:fs";
import type { Json } from "../generate/json.ts";

export const RECORDING = "docs/workflows.json";

/** A call of a workflow with its answer, without the values that differ from run to run. */
export type Exchange = {
  method: string;
  path: string;
  headers: Record<string, string>;
  body?: Json;
  status: number;
  answer: Json;
};
/** By workflow and step. */
export type Recording = Record<string, Record<string, Exchange>>;

export function readRecording(): Recording {
  return JSON.parse(readFileSync(RECORDING, "utf8"));
}

type Logged = {
  stepId: string;
  request: { method: string; url: string; headers: Record<string, string>; body?: Json };
  response: { statusCode: number; body: Json };
};
type Log = { files: Record<string, { executedWorkflows: { workflowId: string; executedSteps: Logged[] }[] }> };

/**
 * The recording of a run, from its log. For a repeated step it has the last answer. The inputs of the run are secrets: the recording has their
 * names, as variables of a shell.
 */
export function recordingOf(log: string, inputs: Record<string, string>): Recording {
  const named = Object.entries(inputs).reduce(
    (text, [name, value]) => text.replaceAll(value, `$${name.toUpperCase()}`),
    log,
  );
  const { files }: Log = JSON.parse(named);
  const workflows = Object.values(files).flatMap(({ executedWorkflows }) => executedWorkflows);
  return Object.fromEntries(
    workflows.map(({ workflowId, executedSteps }) => {
      const steps = Object.fromEntries(executedSteps.map((step) => [step.stepId, exchangeOf(step)]));
      return [workflowId, JSON.parse(withoutChance(JSON.stringify(steps)))];
    }),
  );
}

/** The headers that belong to a workflow, and not to the program that runs it. */
const HEADERS = ["authorization", "content-type", "x-github-event", "x-hub-signature-256"];
function ownHeaders(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => HEADERS.includes(name)));
}

function exchangeOf({ request: { method, url, headers, body }, response }: Logged): Exchange {
  const answer = response.body;
  return {
    method: method.toUpperCase(),
    path: new URL(url).pathname,
    headers: ownHeaders(headers),
    ...(body !== undefined && { body }),
    status: response.statusCode,
    answer: typeof answer === "string" ? withoutDeltas(answer) : withOwnHeaders(answer),
  };
}

/** A delivery shows the headers of its request. */
function withOwnHeaders(answer: Json): Json {
  const { headers, ...others } = answer as { headers?: Record<string, string> };
  return headers === undefined ? answer : { ...others, headers: ownHeaders(headers) };
}

/** Whether a reader gets the pieces of a reply depends on the moment at which it joins. */
function withoutDeltas(events: string): string {
  return events.replaceAll(/event: message\.delta\n.*\n.*\n\n/g, "");
}

const TIME = "2026-11-21T08:54:31.123Z";
const KEYS = ["gw_Jq3v0aXr7Tn5yLw2cBf8hGd1mKs6pVu9eZi4oQxR_tE", "gw_Xb7Lq2Xr7Tn5yLw2cBf8hGd1mKs6pVu9eZi4oQxR_tE"];
const PREFIX = 9;

/** A text with the same ids, keys, hashes, times and durations after each run. */
function withoutChance(text: string): string {
  const keys = numbered(text, /gw_[\w-]{43}/g);
  const withKeys = keys.reduce((text, key, n) => {
    const shown = KEYS[n] as string;
    return text.replaceAll(key, shown).replaceAll(`"${key.slice(0, PREFIX)}"`, `"${shown.slice(0, PREFIX)}"`);
  }, text);
  const ids = numbered(withKeys, /(?<=[_:])[0-9A-HJKMNP-TV-Z]{26}\b/g);
  return ids
    .reduce((text, id, n) => text.replaceAll(id, `01M7YN0XEMM1B7E5S8YF3GK${String(n + 1).padStart(3, "0")}`), withKeys)
    .replaceAll(/sha256:[0-9a-f]{64}/g, "sha256:…")
    .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, TIME)
    .replaceAll(/"(waited_ms|latency_ms|ms)":[\d.]+/g, '"$1":2');
}

/** The different texts that a pattern finds, in order. */
function numbered(text: string, pattern: RegExp): string[] {
  return [...new Set(text.match(pattern))];
}
