import { useEffect } from "preact/hooks";
import { rest } from "#console/app/api.ts";
import { hold, onReturn } from "#console/app/live.ts";
import { useLoaded } from "#console/parts/use.ts";
import { usePushes } from "#console/parts/use-pushes.ts";

/** The schedules, read again when one ran, was paused or resumed, when the turn of one changed, and when the configuration was reloaded. */
export function useSchedules() {
  const loaded = useLoaded(async (signal) => (await rest().schedules.list({ signal })).schedules);
  useEffect(() => {
    const release = hold({ gateway: null, deliveries: true });
    const stop = onReturn(() => void loaded.reload());
    return () => [release, stop].forEach((end) => void end());
  }, []);
  usePushes(
    ({ method, params }) =>
      method.startsWith("schedule.") ||
      method === "system.reloaded" ||
      (method === "delivery.changed" && (params.delivery as { surface?: string }).surface === "schedule"),
    () => void loaded.reload(),
  );
  return loaded;
}
