import { HIDDEN } from "#kit/secret-headers.ts";
import { isSecretKey } from "#observe/redact.ts";

const MOST_DEPTH = 6;
const MOST_ENTRIES = 100;

/** How much of one line may still be written. All values of the line share it. */
export interface Budget {
  /** Characters left for the whole line. */
  left: number;
  /** Characters that one string may have. */
  perString: number;
  /** Called with a string before it is cut, so that no half of a secret stays. */
  cut(value: string, at: number): string;
}

/** Any value as one that JSON.stringify writes within the budget. Never throws, calls no `toJSON`, and ends on every graph. */
function loggable(value: unknown, budget: Budget, above: readonly object[] = []): unknown {
  budget.left -= 2;
  switch (typeof value) {
    case "string":
      return loggableText(value, budget);
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "boolean":
      return value;
    case "bigint":
      return loggableText(String(value), budget);
    case "object":
      if (value === null) return null;
      try {
        return loggableObject(value, budget, above);
      } catch {
        return "[unreadable]"; // a proxy whose traps throw
      }
    default:
      return `[${typeof value}]`;
  }
}

/** The value under its key. The value of a secret's key is hidden, unless it is a count or a flag. */
export function loggableMember(key: string, value: unknown, budget: Budget, above?: readonly object[]): unknown {
  const isHarmless = typeof value === "number" || typeof value === "boolean" || value === null;
  return !isHarmless && isSecretKey(key) ? HIDDEN : loggable(value, budget, above);
}

function loggableText(value: string, budget: Budget): string {
  const most = Math.min(budget.perString, Math.max(budget.left, 0));
  budget.left -= Math.min(value.length, most);
  return value.length <= most ? value : `${budget.cut(value, most)}…[+${value.length - most}]`;
}

function loggableObject(value: object, budget: Budget, above: readonly object[]): unknown {
  if (above.includes(value)) return "[circular]";
  if (above.length >= MOST_DEPTH) return "[deep]";
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? "[invalid date]" : value.toISOString();
  const path = [...above, value];
  return Array.isArray(value) ? loggableList(value, budget, path) : loggableMembers(value, budget, path);
}

function loggableList(list: readonly unknown[], budget: Budget, path: readonly object[]): unknown[] {
  const items: unknown[] = [];
  for (let at = 0; at < list.length; at++) {
    if (at >= MOST_ENTRIES || budget.left <= 0) return [...items, `[+${list.length - at}]`];
    items.push(loggable(readMember(list, String(at)), budget, path));
  }
  return items;
}

function loggableMembers(value: object, budget: Budget, path: readonly object[]): unknown {
  const members: Record<string, unknown> = Object.create(null); // a member may be named `__proto__`
  const keys = value instanceof Error ? keysOfError(value) : Object.keys(value);
  for (const [at, key] of keys.entries()) {
    if (at >= MOST_ENTRIES || budget.left <= 0) {
      members["…"] = `[+${keys.length - at}]`;
      break;
    }
    const member = readMember(value, key);
    const shown = value instanceof Error && key === "extra" ? withoutCause(value, member) : member;
    if (shown !== undefined) members[loggableText(key, budget)] = loggableMember(key, shown, budget, path);
  }
  return members;
}

function readMember(from: object, key: string): unknown {
  try {
    return (from as Record<string, unknown>)[key];
  } catch {
    return "[threw]";
  }
}

/** The members of an error, each fact once: no stack without frames, no detail that repeats the message. A plain error needs no stack. */
function keysOfError(error: Error): string[] {
  const keys = [...new Set(["name", "message", "code", "stack", "cause", "errors", ...Object.keys(error)])];
  return keys.filter((key) => {
    if (key === "stack") return readMember(error, "isPlain") !== true && String(readMember(error, key)).includes("\n");
    return key !== "detail" || readMember(error, key) !== readMember(error, "message");
  });
}

/** An error may carry its cause in `extra`, too: it is shown once. */
function withoutCause(error: Error, extra: unknown): unknown {
  if (typeof extra !== "object" || extra === null || !("cause" in extra)) return extra;
  return extra.cause === readMember(error, "cause") ? { ...extra, cause: undefined } : extra;
}
