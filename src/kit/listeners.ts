/** Who listens, by key. One alone stands for itself, as most keys have one and a set of one weighs ten times as much. */
export type Listeners<T extends object> = Map<string, T | Set<T>>;

/** Adds a listener to those of a key; the returned function takes it away, and the key with the last one. */
export const addListener = <T extends object>(listeners: Listeners<T>, key: string, listener: T): (() => void) => {
  const known = listeners.get(key);
  if (known === undefined) listeners.set(key, listener);
  else if (known instanceof Set) known.add(listener);
  else listeners.set(key, new Set([known, listener]));
  return () => {
    const now = listeners.get(key);
    if (now === listener) listeners.delete(key);
    else if (now instanceof Set && now.delete(listener) && now.size === 0) listeners.delete(key);
  };
};

/** Calls `tell` with each listener of a key; one that is taken away meanwhile is not told any more. */
export const tellListeners = <T extends object>(listeners: Listeners<T>, key: string, tell: (one: T) => void): void =>
  tellAll(listeners.get(key), tell);

/** The same for what was found under a key. */
export const tellAll = <T extends object>(known: T | Set<T> | undefined, tell: (one: T) => void): void => {
  if (known instanceof Set) for (const one of known) tell(one);
  else if (known !== undefined) tell(known);
};
