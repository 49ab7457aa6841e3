/** The listeners, by key. */
export type Listeners<T extends object> = Map<string, Set<T>>;

/** Adds a listener to those of a key; the returned function takes it away, and the key with the last one. */
export function addListener<T extends object>(listeners: Listeners<T>, key: string, listener: T): () => void {
  const all = listeners.get(key) ?? new Set();
  listeners.set(key, all.add(listener));
  return () => {
    if (all.delete(listener) && all.size === 0 && listeners.get(key) === all) listeners.delete(key);
  };
}

/** Calls `tell` with each listener of a key; one that is taken away meanwhile is not told any more. */
export function tellListeners<T extends object>(listeners: Listeners<T>, key: string, tell: (one: T) => void): void {
  for (const one of listeners.get(key) ?? []) tell(one);
}
