/** Adds a listener to those of a key; the returned function takes it away, and the key with the last one. */
export const addListener = <T>(listeners: Map<string, Set<T>>, key: string, listener: T): (() => void) => {
  const set = listeners.get(key) ?? new Set();
  listeners.set(key, set);
  set.add(listener);
  return () => {
    set.delete(listener);
    if (set.size === 0 && listeners.get(key) === set) listeners.delete(key);
  };
};
