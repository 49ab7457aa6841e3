import { shortId } from "../lib/ids.ts";

const MOST = 5;
type Seen = { name: string; page: string; path: string };

/** The things that this tab has shown last, newest first. */
let seen: readonly Seen[] = [];

export function remember(page: string, path: string, params: Readonly<Record<string, string>>): void {
  const [thing] = Object.values(params);
  if (thing === undefined || page === "Settings") return;
  seen = [{ name: shortId(thing, 40), page, path }, ...seen.filter((one) => one.path !== path)].slice(0, MOST + 1);
}

/** The last things but the one that is shown now. */
export function recentBut(path: string): readonly Seen[] {
  return seen.filter((one) => one.path !== path).slice(0, MOST);
}
