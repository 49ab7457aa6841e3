import { HIDDEN, isSecretKey } from "#observe/redact.ts";

const MOST_DEPTH = 6;
const MOST_ENTRIES = 100;

/** How much of one line may still be written. It is shared by all values of the line. */
export interface Budget {
  /** Characters left for the whole line. */
  left: number;
  /** Characters that one string may have. */
  perString: number;
  /** Called with a string before it is cut, so that no half of a secret stays. */
  cut(value: string, at: number): string;
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters that JSON escapes
const plain = /^[^"\\\x00-\x1f\ud800-\udfff]*$/;

/** A string as JSON; a lone surrogate comes out escaped, so that every reader can decode the line. */
export const quote = (value: string): string => (plain.test(value) ? `"${value}"` : JSON.stringify(value));

const stringOf = (value: string, budget: Budget): string => {
  const most = Math.min(budget.perString, Math.max(budget.left, 0));
  budget.left -= Math.min(value.length, most);
  return quote(value.length <= most ? value : `${budget.cut(value, most)}…[+${value.length - most}]`);
};

const read = (from: object, key: string): unknown => {
  try {
    return (from as Record<string, unknown>)[key];
  } catch {
    return "[threw]";
  }
};

const keysOf = (value: object): string[] => (value instanceof Error ? keysOfError(value) : Object.keys(value));

/** What an error says twice is written once: a stack without frames, a detail that is the message. One that calls itself plain needs no stack. */
const keysOfError = (error: Error): string[] => {
  const keys = [...new Set(["name", "message", "code", "stack", "cause", "errors", ...Object.keys(error)])];
  return keys.filter((key) => {
    if (key === "stack") return read(error, "isPlain") !== true && String(read(error, key)).includes("\n");
    return key !== "detail" || read(error, key) !== read(error, "message");
  });
};

/** An error that carries its cause among other things, too, tells of it once. */
const besides = (error: Error, key: string, value: unknown): unknown => {
  if (key !== "extra" || typeof value !== "object" || value === null || !("cause" in value)) return value;
  return value.cause === read(error, "cause") ? { ...value, cause: undefined } : value;
};

const objectOf = (value: object, budget: Budget, above: readonly object[]): string => {
  if (above.includes(value)) return '"[circular]"';
  if (above.length >= MOST_DEPTH) return '"[deep]"';
  if (ArrayBuffer.isView(value)) return `"[${value.byteLength} bytes]"`;
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? '"[invalid date]"' : `"${value.toISOString()}"`;
  const path = [...above, value];
  const parts: string[] = [];
  const isArray = Array.isArray(value);
  const keys = isArray ? undefined : keysOf(value);
  const length = isArray ? value.length : (keys?.length ?? 0);
  for (let at = 0; at < length; at++) {
    if (at >= MOST_ENTRIES || budget.left <= 0) {
      parts.push(isArray ? `"[+${length - at}]"` : `"…":"[+${length - at}]"`);
      break;
    }
    const key = keys?.[at];
    const member = read(value, key ?? String(at));
    const inner = key !== undefined && value instanceof Error ? besides(value, key, member) : member;
    if (key === undefined) parts.push(jsonOf(inner, budget, path));
    else if (inner !== undefined) parts.push(`${stringOf(key, budget)}:${memberOf(key, inner, budget, path)}`);
  }
  return isArray ? `[${parts.join(",")}]` : `{${parts.join(",")}}`;
};

/** A value under its key: what a secret's name holds is hidden, unless it is a count or a flag. */
export const memberOf = (key: string, value: unknown, budget: Budget, above: readonly object[] = []): string => {
  const harmless = typeof value === "number" || typeof value === "boolean" || value === null;
  return !harmless && isSecretKey(key) ? `"${HIDDEN}"` : jsonOf(value, budget, above);
};

/** What stands behind the point of so many thousandths. */
const THOUSANDTHS = Array.from({ length: 1000 }, (_, n) => String((1000 + n) / 1000).slice(1));
const MOST_THOUSANDTHS = 1e9;

/** A number as String has it. Of times, which have thousandths, it would look for the shortest text that reads as the same, which takes long. */
const numberText = (value: number): string => {
  const all = Math.round(value * 1000);
  if (all < 0 || all > MOST_THOUSANDTHS || all / 1000 !== value) return String(value);
  const left = all % 1000;
  return (all - left) / 1000 + (THOUSANDTHS[left] as string);
};

/** Any value as JSON text within the budget. Never throws, calls no `toJSON`, and ends on every graph. */
export const jsonOf = (value: unknown, budget: Budget, above: readonly object[] = []): string => {
  budget.left -= 2;
  switch (typeof value) {
    case "string":
      return stringOf(value, budget);
    case "number":
      return Number.isFinite(value) ? numberText(value) : `"${value}"`;
    case "boolean":
      return value ? "true" : "false";
    case "bigint":
      return stringOf(String(value), budget);
    case "object":
      if (value === null) return "null";
      try {
        return objectOf(value, budget, above);
      } catch {
        return '"[unreadable]"'; // a proxy whose traps throw
      }
    default:
      return `"[${typeof value}]"`;
  }
};
