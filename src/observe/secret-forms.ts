/** Shorter texts are not hidden: hiding them would make every line unreadable. */
const SHORTEST = 4;
/** Shorter secrets are hidden as they are and whole in base64, but not in hex or as a part of base64: these forms would be found by chance. */
const SHORTEST_PART = 8;

/** The forms of a secret as it can stand in a text. `parts`: what base64 makes of it inside a longer text, without its first and last character. */
export type Forms = { whole: readonly string[]; parts: readonly string[] };

/**
 * The forms of a secret, besides those that `decode` leads back to one of these: as it is, its UTF-8 read as Latin-1 (bodies are stored
 * so), with `+` for blanks, with the controls of JSON, in base64 and base64url at each of the three alignments, and in hex. The forms of each
 * line of a secret of several lines are among them.
 */
export function formsOf(secret: string): Forms {
  if (secret.length < SHORTEST) return { whole: [], parts: [] };
  const bytes = Buffer.from(secret);
  const whole = new Set([secret, JSON.stringify(secret).slice(1, -1)]);
  for (const spaced of [secret, secret.replaceAll(" ", "+")])
    whole.add(spaced).add(Buffer.from(spaced).toString("latin1"));
  for (const way of ["base64", "base64url"] as const) whole.add(bytes.toString(way).replace(/=+$/, ""));
  const parts = new Set<string>();
  if (secret.length >= SHORTEST_PART) {
    whole.add(bytes.toString("hex")).add(bytes.toString("hex").toUpperCase());
    for (const part of [0, 1, 2].flatMap((before) => base64Inside(bytes, before))) parts.add(part);
  }
  for (const line of linesOf(secret)) for (const form of formsOf(line).whole) whole.add(form);
  return { whole: [...whole], parts: [...parts] };
}

/** The characters of base64 that depend on no byte but these, with `before` bytes in front of them, in both alphabets. */
function base64Inside(bytes: Buffer, before: number): string[] {
  const all = Buffer.concat([Buffer.alloc(before), bytes, Buffer.alloc(2)]);
  const from = Math.ceil((before * 8) / 6);
  const to = Math.floor(((before + bytes.length) * 8) / 6);
  return (["base64", "base64url"] as const).map((way) => all.toString(way).slice(from, to));
}

/** The lines of a secret that has several, such as a private key: logs and programs show them one by one. */
function linesOf(secret: string): string[] {
  const lines = secret.split(/[\r\n]+/).map((line) => line.trim());
  return lines.length < 2 ? [] : lines.filter((line) => line.length >= SHORTEST_PART && !line.startsWith("-----"));
}

/** The escapes that are decoded: percent-encoded bytes, and those of JSON and JavaScript that can stand for any character. */
export type Escapes = { percent: boolean; backslash: boolean };

/** A decoded text, with the position in the original of each of its characters and of its end. */
type Decoded = { text: string; places: Uint32Array };

const PERCENT = 0x25;
const BACKSLASH = 0x5c;
const DIGITS = new Int8Array(128).fill(-1);
for (const [n, digits] of [..."0123456789abcdef"].entries())
  for (const digit of [digits, digits.toUpperCase()]) DIGITS[digit.charCodeAt(0)] = n;

/** The number that this many hexadecimal digits stand for; -1 if another character is among them. */
function hexAt(text: string, from: number, count: number): number {
  let number = 0;
  for (let at = from; at < from + count; at++) {
    const digit = DIGITS[text.charCodeAt(at)] ?? -1;
    if (digit < 0) return -1;
    number = number * 16 + digit;
  }
  return number;
}

/** The size of the escape at a place; 1 if there is none. */
function escapeAt(text: string, at: number, { percent, backslash }: Escapes): number {
  const unit = text.charCodeAt(at);
  if (unit === PERCENT) return percent && hexAt(text, at + 1, 2) >= 0 ? 3 : 1;
  if (unit !== BACKSLASH || !backslash) return 1;
  const kind = text[at + 1];
  if (kind === '"' || kind === "/" || kind === "\\") return 2;
  if (kind === "u") return hexAt(text, at + 2, 4) >= 0 ? 6 : 1;
  return kind === "x" && hexAt(text, at + 2, 2) >= 0 ? 4 : 1;
}

/** Undefined for a text without such escapes. */
export function decode(text: string, escapes: Escapes): Decoded | undefined {
  // Most texts were decoded before, or have escapes of one kind only.
  if (!(escapes.percent && text.includes("%")) && !(escapes.backslash && text.includes("\\"))) return undefined;
  const units = new Uint16Array(text.length);
  const places = new Uint32Array(text.length + 1);
  let length = 0;
  for (let at = 0; at < text.length; length++) {
    places[length] = at;
    const unit = text.charCodeAt(at);
    if (unit !== PERCENT && unit !== BACKSLASH) {
      units[length] = unit;
      at++;
      continue;
    }
    const size = escapeAt(text, at, escapes);
    if (size < 3) units[length] = text.charCodeAt(at + size - 1);
    else units[length] = hexAt(text, at + (size === 3 ? 1 : 2), size === 6 ? 4 : 2);
    at += size;
  }
  if (length === text.length) return undefined;
  places[length] = text.length;
  const decoded = Buffer.from(units.buffer, 0, length * 2).toString("utf16le");
  return { text: decoded, places: places.subarray(0, length + 1) };
}
