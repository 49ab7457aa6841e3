import type { Config } from "./config.ts";
import { dotted, type Path } from "./problems.ts";

/** The differences between two configurations: dotted keys, never values. */
export type Difference = {
  /** Keys that take effect at once. */
  changed: string[];
  /** Keys that keep their value until the gateway starts again. */
  needsRestart: string[];
};

export function diffConfig(running: Config, next: Config): Difference {
  const fixed = (path: Path) => path[0] === "store" || (path[0] === "webhooks" && path[1] === "path");
  const listeners = (config: Config) => config.gateway.listeners;
  const rest = (config: Config) => ({ ...config, gateway: { ...config.gateway, listeners: undefined } });
  const paths = compare(rest(running), rest(next), []);
  return {
    changed: [...certificates(running, next), ...paths.filter((path) => !fixed(path)).map(dotted)],
    needsRestart: [...moved(listeners(running), listeners(next)), ...new Set(paths.filter(fixed).map(whole))],
  };
}

/** The configuration to run after a reload: the new one, but for what needs a restart. */
export function applyReload(running: Config, next: Config): Config {
  const listeners = moved(running.gateway.listeners, next.gateway.listeners).length > 0 ? running : next;
  return Object.freeze({
    ...next,
    gateway: Object.freeze({ ...next.gateway, listeners: listeners.gateway.listeners }),
    webhooks: Object.freeze({ ...next.webhooks, path: running.webhooks.path }),
    store: running.store,
  });
}

/** The keys by which the listeners differ, without their certificates, which are read again in place. */
function moved(running: Config["gateway"]["listeners"], next: Config["gateway"]["listeners"]): string[] {
  const plain = (list: typeof running) => list.map(({ tls, ...listener }) => ({ ...listener, tls: tls !== undefined }));
  const paths = compare(plain(running)[0], plain(next)[0], ["gateway"]);
  if (compare(plain(running), plain(next), []).length === 0) return [];
  const single =
    running.length === 1 && next.length === 1 && paths.every((path) => path[1] === "host" || path[1] === "port");
  return single ? paths.map(dotted) : ["gateway.listeners"];
}

function certificates(running: Config, next: Config): string[] {
  if (moved(running.gateway.listeners, next.gateway.listeners).length > 0) return [];
  return next.gateway.listeners.flatMap(({ tls }, index) =>
    compare(running.gateway.listeners[index]?.tls, tls, []).length > 0 ? [`gateway.listeners[${index}].tls`] : [],
  );
}

/** The store is one key: its type and its address change together. */
const whole = (path: Path): string => (path[0] === "store" ? "store" : dotted(path));

/** The innermost keys that differ. A list counts as one; a map in another order differs, as order means something. */
function compare(a: unknown, b: unknown, path: Path): Path[] {
  if (Object.is(a, b)) return [];
  if (!isRecord(a) || !isRecord(b)) return JSON.stringify(a) === JSON.stringify(b) ? [] : [path];
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  const inside = keys.flatMap((key) => compare(a[key], b[key], [...path, key]));
  const reordered = inside.length === 0 && Object.keys(a).join("\0") !== Object.keys(b).join("\0");
  return reordered ? [path] : inside;
}

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
