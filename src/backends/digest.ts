import type { BackendMessage } from "./backend.ts";

const CHARACTERS = 80;

/** A summary that no model writes: the beginning of each message, with its role. The same messages give the same text. */
export const digestOf = (messages: readonly BackendMessage[]): string =>
  messages.map(({ role, text }) => `${role}: ${cut(text, CHARACTERS)}`).join("\n");

/** Never inside a character of two code units. */
const cut = (text: string, length: number): string =>
  text.slice(0, isLowSurrogate(text.charCodeAt(length)) ? length - 1 : length);

export const isLowSurrogate = (unit: number): boolean => unit >= 0xdc00 && unit <= 0xdfff;
