interface Store {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
  removeItem(key: string): void;
}

/** If the browser blocks storage, every use of it throws: the values are then stored in memory and are lost with the page. */
function orInMemory(name: "localStorage" | "sessionStorage"): Store {
  try {
    const found = (globalThis as Partial<Record<typeof name, Store>>)[name];
    found?.getItem("");
    if (found) return found;
  } catch {}
  const values = new Map<string, string>();
  return {
    getItem: (key) => values.get(key) ?? null,
    setItem: (key, value) => void values.set(key, value),
    removeItem: (key) => void values.delete(key),
  };
}

/** What this browser remembers. */
export const browserStorage = orInMemory("localStorage");
/** What this tab remembers. */
export const tabStorage = orInMemory("sessionStorage");
