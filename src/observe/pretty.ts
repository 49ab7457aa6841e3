import { type Budget, memberOf } from "#observe/safe-json.ts";

// biome-ignore lint/suspicious/noControlCharactersInRegex: a terminal obeys these characters
const obeyed = /[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g;
const bare = /^"[\w./:@+*-]+"$/;

/** What a terminal would obey instead of show comes out escaped: a request must not draw on the operator's screen. */
const harmless = (text: string): string =>
  text.replace(obeyed, (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`);

const stackOf = (error: Error, budget: Budget): string => {
  try {
    const frames = String(error.stack).split("\n").slice(1, 20);
    return frames.map((frame) => `\n    ${harmless(budget.cut(frame.trim(), 300))}`).join("");
  } catch {
    return "";
  }
};

/** One event for a person's eyes: `08:54:31.123 info  request operation=chat.send status=200`. */
export const prettyLine = (time: string, level: string, event: string, fields: object, budget: Budget): string => {
  let line = `${time.slice(11, 23)} ${level.padEnd(5)} ${harmless(event)}`;
  let stack = "";
  for (const key of Object.keys(fields)) {
    const value = (fields as Record<string, unknown>)[key];
    if (value === undefined) continue;
    const shown = value instanceof Error ? `${value.name}: ${value.message}` : value;
    if (value instanceof Error) stack += stackOf(value, budget);
    const text = memberOf(key, shown, budget);
    line += ` ${harmless(key)}=${bare.test(text) ? text.slice(1, -1) : harmless(text)}`;
  }
  return `${line}${stack}\n`;
};
