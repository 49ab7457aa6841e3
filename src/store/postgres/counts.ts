/** What is added to the store's counters, by name. */
export type Deltas = Readonly<Record<string, number>>;

/** The store's counters: what the calls of this node have added, at once, and what those of others had when they were last looked at. */
export const createCounts = () => {
  const own = new Map<string, number>();
  let others: Deltas = {};
  /** What calls have added since `renew`: from then on they count on lanes that nothing uncertain was counted on. */
  let fresh: Map<string, number> | undefined;
  const addTo = (sums: Map<string, number>, deltas: Deltas): void => {
    for (const name in deltas) sums.set(name, (sums.get(name) ?? 0) + (deltas[name] as number));
  };
  return {
    of: (name: string): number => (own.get(name) ?? 0) + (others[name] ?? 0),
    add(deltas: Deltas): void {
      addTo(own, deltas);
      if (fresh) addTo(fresh, deltas);
    },
    /** What was added so far has become unsure: at the next look the others' counters hold what was kept of it. */
    renew(): void {
      fresh = new Map();
    },
    /** What all others have added, as it is now. */
    others(counted: Deltas): void {
      others = counted;
      if (!fresh) return;
      own.clear();
      for (const [name, value] of fresh) own.set(name, value);
      fresh = undefined;
    },
  };
};

export type Counts = ReturnType<typeof createCounts>;
