/** A line of the palette. Its groups are shown in this order. */
export const GROUPS = ["id", "action", "recent", "agent", "page", "elsewhere"] as const;
export type Entry = {
  group: (typeof GROUPS)[number];
  name: string;
  icon: string;
  hint?: string | undefined;
  /** The keys that do the same. */
  keys?: string | undefined;
  /** Why it cannot be run now. */
  why?: string | undefined;
  run: () => void;
};

/** The entries that are found, best first within each group; all but those from elsewhere where nothing is asked. */
export function ranked(
  asked: string,
  entries: readonly Entry[],
  search: (names: string[], asked: string) => readonly number[],
): Entry[] {
  const found =
    asked === ""
      ? entries.filter(({ group }) => group !== "elsewhere")
      : search(
          entries.map(({ name }) => name),
          asked,
        ).flatMap((n) => entries[n] ?? []);
  return GROUPS.flatMap((group) => found.filter((entry) => entry.group === group));
}
