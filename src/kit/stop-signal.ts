type Listener = () => void;
const NOBODY: readonly Listener[] = [];

/** Tells a backend to stop, as an AbortSignal does. */
export interface StopSignal {
  readonly aborted: boolean;
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(event: "abort", listener: Listener, options?: { once: true }): void;
  removeEventListener(event: "abort", listener: Listener): void;
}

/** One that can be aborted. Node's own costs a short turn as much as its request does, and nearly no turn is stopped. */
export class Stop implements StopSignal {
  aborted = false;
  reason: unknown = undefined;
  #listeners: readonly Listener[] = NOBODY;

  /** Calls the listeners before it returns. Only the first call has an effect. */
  abort(reason: unknown): void {
    if (this.aborted) return;
    this.aborted = true;
    this.reason = reason;
    // A listener that is removed meanwhile is not called.
    for (const listener of this.#listeners) if (this.#listeners.includes(listener)) listener();
    this.#listeners = NOBODY;
  }

  throwIfAborted(): void {
    if (this.aborted) throw this.reason;
  }

  /** As with Node's own: a listener that is added after the abort is not called. */
  addEventListener(_event: "abort", listener: Listener): void {
    if (this.aborted) return;
    this.#listeners = this.#listeners === NOBODY ? [listener] : [...this.#listeners, listener];
  }

  removeEventListener(_event: "abort", listener: Listener): void {
    const all = this.#listeners;
    if (all.length === 1) this.#listeners = all[0] === listener ? NOBODY : all;
    else if (all !== NOBODY) this.#listeners = all.filter((one) => one !== listener);
  }
}

/** The same as Node and all that is built on it know it. */
export function abortSignalOf(signal: StopSignal): AbortSignal {
  if (signal instanceof AbortSignal) return signal;
  const controller = new AbortController();
  const abort = () => controller.abort(signal.reason);
  if (signal.aborted) abort();
  else signal.addEventListener("abort", abort, { once: true });
  return controller.signal;
}
