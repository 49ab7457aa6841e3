import { type Signal, useSignal } from "@preact/signals";
import { useCallback, useEffect, useRef } from "preact/hooks";

export type Loaded<Value> = {
  value: Signal<Value | undefined>;
  error: Signal<unknown>;
  isLoading: Signal<boolean>;
  /** When it was read last. */
  at: Signal<number | undefined>;
  reload: () => Promise<void>;
};

/** Reads something when the page opens, when `keys` change, and when asked again. An older answer never replaces a newer one. */
export function useLoaded<Value>(
  read: (signal: AbortSignal) => Promise<Value>,
  keys: readonly unknown[] = [],
): Loaded<Value> {
  const value = useSignal<Value | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  const isLoading = useSignal(true);
  const at = useSignal<number | undefined>(undefined);
  const running = useRef<AbortController>(undefined);
  const latest = useRef(read);
  latest.current = read;

  const reload = useCallback(async () => {
    running.current?.abort();
    const own = new AbortController();
    running.current = own;
    isLoading.value = true;
    try {
      const found = await latest.current(own.signal);
      if (own.signal.aborted) return;
      value.value = found;
      error.value = undefined;
      at.value = Date.now();
    } catch (thrown) {
      if (own.signal.aborted) return;
      error.value = thrown;
    } finally {
      if (running.current === own) isLoading.value = false;
    }
  }, []);

  useEffect(() => {
    value.value = undefined;
    void reload();
    return () => running.current?.abort();
  }, keys);
  return { value, error, isLoading, at, reload };
}

/** Runs an action of the user, one at a time, and stores its error. */
export function useAction<Arguments extends unknown[]>(act: (...given: Arguments) => Promise<unknown>) {
  const isRunning = useSignal(false);
  const error = useSignal<unknown>(undefined);
  const run = async (...given: Arguments): Promise<boolean> => {
    if (isRunning.peek()) return false;
    isRunning.value = true;
    error.value = undefined;
    try {
      await act(...given);
      return true;
    } catch (thrown) {
      error.value = thrown;
      return false;
    } finally {
      isRunning.value = false;
    }
  };
  return { run, isRunning, error };
}
