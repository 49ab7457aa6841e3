import type { Requirement } from "./requirements.ts";

export type Row = { part: string; text: string; outcome: "holds" | "fails" | "unseen"; words?: string };

/** Checks one requirement after another, and prints each result at once. */
export async function audit(requirements: readonly Requirement[], tell: (row: Row) => void): Promise<Row[]> {
  const found: Row[] = [];
  for (const requirement of requirements) {
    const row = await look(requirement);
    found.push(row);
    tell(row);
  }
  return found;
}

async function look({ part, text, ...how }: Requirement): Promise<Row> {
  if ("unseen" in how) return { part, text, outcome: "unseen", words: how.unseen };
  try {
    await how.look();
    return { part, text, outcome: "holds" };
  } catch (error) {
    return { part, text, outcome: "fails", words: (error as Error).message };
  }
}

const MARKS = { holds: "ok  ", fails: "FAIL", unseen: "-   " } as const;

/** The lines of a row, with the heading of its part before the first row. Consecutive rows print a common reason once. */
export function linesOf({ part, text, outcome, words }: Row, before: Row | undefined): string[] {
  return [
    ...(before?.part === part ? [] : [`\n${part}`]),
    `  ${MARKS[outcome]}  ${text}`,
    ...(words === undefined || (before?.part === part && before.words === words) ? [] : [`        ${words}`]),
  ];
}

export function summaryOf(found: readonly Row[]): string {
  const count = (outcome: Row["outcome"]) => found.filter((row) => row.outcome === outcome).length;
  return `${count("holds")} of ${found.length} requirements hold, ${count("fails")} fail, ${count("unseen")} cannot be seen from outside.`;
}
