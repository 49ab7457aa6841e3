/** The listeners, by key. */
export type Listeners<T extends object> = Map<string, Set<T>>;

/** Adds a listener to those of a key. The returned function removes it; the key is removed with its last listener. */
export function addListener<T extends object>(listeners: Listeners<T>, key: string, listener: T): () => void {
  const all = listeners.get(key) ?? new Set();
  listeners.set(key, all.add(listener));
  return () => {
    if (all.delete(listener) && all.size === 0 && listeners.get(key) === all) listeners.delete(key);
  };
}

/** Calls `notify` with each listener of a key, except those that are removed meanwhile. */
export function notifyListeners<T extends object>(
  listeners: Listeners<T>,
  key: string,
  notify: (listener: T) => void,
): void {
  for (const listener of listeners.get(key) ?? []) notify(listener);
}
