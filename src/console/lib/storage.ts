type Store = Pick<Storage, "getItem" | "setItem" | "removeItem">;

/** A browser that blocks storage throws at its first use: then the values last as long as the page. */
function orInMemory(storage: () => Storage): Store {
  try {
    const found = storage();
    found.getItem("");
    return found;
  } catch {
    const values = new Map<string, string>();
    return {
      getItem: (key) => values.get(key) ?? null,
      setItem: (key, value) => void values.set(key, value),
      removeItem: (key) => void values.delete(key),
    };
  }
}

/** What this browser remembers. */
export const browserStorage = orInMemory(() => localStorage);
/** What this tab remembers. */
export const tabStorage = orInMemory(() => sessionStorage);
