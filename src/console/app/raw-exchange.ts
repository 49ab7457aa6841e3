import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { rawFetch } from "./api.ts";

/** A request as it is sent, and as it is shown: a secret is shown as a variable. */
export type RawRequest = {
  method: string;
  path: string;
  headers: Readonly<Record<string, string>>;
  shownHeaders: Readonly<Record<string, string>>;
  body: string | undefined;
};

/** A request as it was sent, with its answer; `text` grows while an answer streams. */
export type RawExchange = {
  request: RawRequest;
  status: number;
  statusText: string;
  headers: readonly (readonly [name: string, value: string])[];
  text: string;
  /** How long it took: to the head of the answer while that streams, to its end afterwards. */
  ms: number;
  isOpen: boolean;
};

/** No page shows more of an answer. */
const MOST = 4 * 1024 * 1024;

/** Sends one request at a time, and stores the last exchange. */
export function useExchange(): {
  exchange: Signal<RawExchange | undefined>;
  error: Signal<unknown>;
  isRunning: Signal<boolean>;
  send: (request: RawRequest) => Promise<void>;
  stop: () => void;
} {
  const exchange = useSignal<RawExchange | undefined>(undefined);
  const error = useSignal<unknown>(undefined);
  const isRunning = useSignal(false);
  const running = useRef<AbortController>(undefined);
  const stop = () => running.current?.abort();
  useEffect(() => stop, []);

  const send = async (request: RawRequest): Promise<void> => {
    const own = new AbortController();
    running.current?.abort();
    running.current = own;
    isRunning.value = true;
    error.value = undefined;
    exchange.value = undefined;
    const began = performance.now();
    try {
      const { method, path, headers, body } = request;
      const init = { method, headers: { ...headers }, cache: "no-store" as const, signal: own.signal };
      const response = await rawFetch(path, { ...init, ...(body !== undefined && { body }) });
      const { status, statusText } = response;
      let shown: RawExchange = {
        request,
        status,
        statusText,
        text: "",
        isOpen: true,
        headers: [...response.headers].map(([name, value]) => [name, value] as const),
        ms: performance.now() - began,
      };
      exchange.value = shown;
      const decoder = new TextDecoder();
      const reader = response.body?.getReader();
      for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
        if (shown.text.length > MOST) break;
        shown = { ...shown, text: shown.text + decoder.decode(part.value, { stream: true }) };
        exchange.value = shown;
      }
      exchange.value = { ...shown, isOpen: false, ms: performance.now() - began };
    } catch (thrown) {
      // A stopped answer shows its received part.
      if (exchange.value?.isOpen) exchange.value = { ...exchange.value, isOpen: false };
      if (!own.signal.aborted) error.value = thrown;
    } finally {
      if (running.current === own) isRunning.value = false;
    }
  };
  return { exchange, error, isRunning, send, stop };
}
