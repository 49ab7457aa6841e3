import { duration } from "#console/lib/format.ts";
import { pairWords } from "#console/lib/steps.ts";
import type { DryRun, PlannedTurn } from "#generated/clients/typescript/src/rest-types.ts";
import { oneLine } from "./output.ts";
import { styled } from "./terminal.ts";
import { shortTime } from "./values.ts";

/** The result of each mapping for a request, and the mapping that would start a turn. */
export function dryRunWords(run: DryRun): string {
  const tried = run.mappings.map(({ mapping, matched, failed, message, turn }) => {
    const head = matched
      ? `${styled("green", "✓")} ${mapping} matches`
      : `${styled("red", "✕")} ${mapping}: ${failedWords(failed)}`;
    const agent = turn === null ? "" : turnWords(turn);
    return `${head}${agent}${message === null ? "" : `\n${message.replace(/^/gm, "    ")}`}`;
  });
  return [...tried, startWords(run)].join("\n");
}

function failedWords(failed: { path: string; expected: readonly string[]; found: string | null } | null): string {
  if (failed === null) return "does not match";
  return oneLine(pairWords(failed));
}

/** The agent, the session, the address of the reply and the burst of the turn, and the places without a value. */
function turnWords({ agent, session_id: session, to, thread, coalesce, notes }: PlannedTurn): string {
  const address = [
    ...(to === null ? [] : [`to ${oneLine(to)}`]),
    ...(thread === null ? [] : [`thread ${oneLine(thread)}`]),
  ];
  const lines = [
    ...(address.length > 0 ? [`reply ${address.join(", ")}`] : []),
    ...(coalesce === null ? [] : [groupWords(coalesce)]),
    ...notes.map((note) => styled("yellow", oneLine(note))),
  ];
  return [`  → ${agent}${session === null ? "" : `, session ${session}`}`, ...lines].join("\n  ");
}

function groupWords({ key, window_ms, max_wait_ms, joins }: NonNullable<PlannedTurn["coalesce"]>): string {
  if (joins === null)
    return `key ${oneLine(key)}: opens a turn that waits ${duration(window_ms)} after the last request, at most ${duration(max_wait_ms)}`;
  const { turn_id, requests, closes_at } = joins;
  return `key ${oneLine(key)}: joins ${turn_id} (${requests} so far), which waits until ${shortTime(closes_at)}`;
}

/** A mapping that matches and starts nothing is only used at its own address. */
function startWords({ starts, mappings }: DryRun): string {
  const joins = mappings.find(({ mapping }) => mapping === starts)?.turn?.coalesce?.joins;
  if (starts !== null) return `${starts} would ${joins ? "join an open turn" : "start a turn"}.`;
  const own = mappings.find(({ matched }) => matched)?.mapping;
  return own === undefined
    ? "No mapping would start a turn."
    : `No mapping would start a turn here: ${own} is reached only at its own address. Try it with --mapping ${own}`;
}
