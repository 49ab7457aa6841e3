import type { Config } from "./config.ts";
import { dotted, type Path } from "./problems.ts";

/** The differences between two configurations: dotted keys, never values. */
export type Difference = {
  /** Keys that take effect immediately. */
  changed: string[];
  /** Keys that keep their value until a restart. */
  needsRestart: string[];
};

export function diffConfig(running: Config, next: Config): Difference {
  const isFixed = (path: Path) =>
    path[0] === "store" || (path[0] === "webhooks" && path[1] === "path") || isTracing(path);
  const rest = (config: Config) => ({ ...config, gateway: { ...config.gateway, listeners: undefined } });
  const paths = compare(rest(running), rest(next), []);
  const movedKeys = moved(running, next);
  return {
    changed: [
      ...(movedKeys.length > 0 ? [] : certificates(running, next)),
      ...paths.filter((path) => !isFixed(path)).map(dotted),
    ],
    // The store is one key: its type and its address change together.
    needsRestart: [
      ...movedKeys,
      ...new Set(
        paths
          .filter(isFixed)
          .map((path) => (path[0] === "store" ? "store" : isTracing(path) ? "gateway.tracing" : dotted(path))),
      ),
    ],
  };
}

function isTracing(path: Path): boolean {
  return path[0] === "gateway" && path[1] === "tracing";
}

/** The configuration to run after a reload: the new one, except for keys that need a restart. */
export function applyReload(running: Config, next: Config): Config {
  const { listeners } = (moved(running, next).length > 0 ? running : next).gateway;
  return Object.freeze({
    ...next,
    gateway: Object.freeze({ ...next.gateway, listeners, tracing: running.gateway.tracing }),
    webhooks: Object.freeze({ ...next.webhooks, path: running.webhooks.path }),
    store: running.store,
  });
}

/** The keys by which the listeners differ, without their certificates, which are read again in place. */
function moved(running: Config, next: Config): string[] {
  const [before, after] = [running, next].map(({ gateway }) =>
    gateway.listeners.map(({ tls, ...listener }) => ({ ...listener, tls: tls !== undefined })),
  ) as [object[], object[]];
  if (compare(before, after, []).length === 0) return [];
  const paths = compare(before[0], after[0], ["gateway"]);
  const isSingle = before.length === 1 && after.length === 1;
  const isAddress = paths.every((path) => path[1] === "host" || path[1] === "port");
  return isSingle && isAddress ? paths.map(dotted) : ["gateway.listeners"];
}

function certificates(running: Config, next: Config): string[] {
  return next.gateway.listeners.flatMap(({ tls }, index) =>
    compare(running.gateway.listeners[index]?.tls, tls, []).length > 0 ? [`gateway.listeners[${index}].tls`] : [],
  );
}

/** The maps with a significant order. */
const ORDERED = ["agents", "webhooks.mappings"];

/** The innermost keys that differ. A list counts as one. */
function compare(a: unknown, b: unknown, path: Path): Path[] {
  if (Object.is(a, b)) return [];
  if (!isRecord(a) || !isRecord(b)) return JSON.stringify(a) === JSON.stringify(b) ? [] : [path];
  const keys = [...new Set([...Object.keys(a), ...Object.keys(b)])];
  const inside = keys.flatMap((key) => compare(a[key], b[key], [...path, key]));
  const isReordered = inside.length === 0 && Object.keys(a).join("\0") !== Object.keys(b).join("\0");
  return isReordered && ORDERED.includes(dotted(path)) ? [path] : inside;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
