import { useEffect, useRef } from "preact/hooks";
import { type AnyPush, onPush } from "../app/live.ts";

const GATHER_MS = 500;

/** Calls a function soon after pushes, once for those that arrive together. */
export function usePushes(isWanted: (push: AnyPush) => boolean, act: () => void): void {
  const latest = useRef({ isWanted, act });
  latest.current = { isWanted, act };
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const stop = onPush((push) => {
      if (!latest.current.isWanted(push)) return;
      timer ??= setTimeout(() => {
        timer = undefined;
        latest.current.act();
      }, GATHER_MS);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
}
