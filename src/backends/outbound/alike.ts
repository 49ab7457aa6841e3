import { isUtf8 } from "node:buffer";

const QUOTE = 34;
const BACKSLASH = 92;
const SPACE = 32;
const REPLACEMENT = "\ufffd";
/** Stands for any text. */
const ANY = "any text";
/** So many forms that no event had again are enough to see that this stream has none. */
const MOST_IN_VAIN = 4;

/** What an event says that is text alone. `block` is all else that matters of it. */
export type Said = { text: string; block: string | undefined };

/** Tells that by the event itself, whatever came before it; undefined for one that is more than text. */
export type SaidBy = (name: string, data: string) => Said | undefined;

/** Events that are pieces of text: which they are, and who is told of those that need not be read as a whole. */
export type Pieces = { saidBy: SaidBy; onText: (text: string, block: string | undefined) => void };

/**
 * Most pieces of a reply come in events that differ in their text alone. Of an event that was read the form is kept: what stands before and
 * after its text. Another with the same bytes there is the same event with another text, and to see that costs a tenth of reading it.
 * Texts that came together are told together: whoever hears them pays for each time it is told.
 */
export class Alike {
  readonly #saidBy: SaidBy;
  readonly #onText: (text: string, block: string | undefined) => void;
  #before: Buffer | undefined = undefined;
  #after: Buffer = NOTHING;
  #block: string | undefined = undefined;
  /** Taken, and not told yet. */
  #text = "";
  #inVain = 0;
  #isNew = false;

  constructor({ saidBy, onText }: Pieces) {
    this.#saidBy = saidBy;
    this.#onText = onText;
  }

  /** Takes the text of the event that begins at `from`, if it has the form and is there as a whole before `most`. Answers where it ends, or -1. */
  take(bytes: Buffer, from: number, most: number): number {
    const before = this.#before;
    if (!before) return -1;
    const after = this.#after;
    const start = from + before.length;
    const last = most - after.length;
    if (start > last || bytes[start - 1] !== QUOTE) return -1;
    let to = start;
    let all = 0;
    // What is escaped, or ends the text, is not any text.
    for (let byte = bytes[to] as number; to <= last && byte !== QUOTE; byte = bytes[++to] as number) {
      if (byte === BACKSLASH || byte < SPACE) return -1;
      all |= byte;
    }
    if (to > last || to === start) return -1;
    // By hand where it is short: a call out of JavaScript costs more.
    for (let n = 0; n < after.length; n++) if (bytes[to + n] !== after[n]) return -1;
    if (bytes.compare(before, 0, before.length, from, start) !== 0) return -1;
    const text = bytes.toString(all < 0x80 ? "latin1" : "utf8", start, to);
    if (all >= 0x80 && text.includes(REPLACEMENT) && !isUtf8(bytes.subarray(start, to))) return -1;
    this.#isNew = false;
    this.#text += text;
    return to + after.length;
  }

  /** Tells what was taken. */
  tell(): void {
    const text = this.#text;
    if (text === "") return;
    this.#text = "";
    this.#onText(text, this.#block);
  }

  /** Takes the form of an event that was read and says `said`, where it has one. */
  learn(name: string, data: string, said: Said, bytes: Buffer): void {
    this.forget();
    if (this.#inVain >= MOST_IN_VAIN || said.text === "") return;
    const quoted = JSON.stringify(said.text);
    const at = onlyPlace(data, quoted);
    if (quoted.length !== said.text.length + 2 || at === undefined) return;
    // Without one each string stands there as it is, so the one place is the text's.
    if (data.includes("\\") && !this.#isTextAt(at, quoted.length, name, data, said)) return;
    const event = bytes.toString("latin1");
    const literal = Buffer.from(quoted).toString("latin1");
    const place = onlyPlace(event, literal);
    if (place === undefined) return;
    this.#before = Buffer.from(event.slice(0, place + 1), "latin1");
    this.#after = Buffer.from(event.slice(place + literal.length - 1), "latin1");
    this.#block = said.block;
    this.#isNew = true;
  }

  /** Whether another text in this place would be said in its stead. */
  #isTextAt(at: number, length: number, name: string, data: string, { block }: Said): boolean {
    const other = this.#saidBy(name, `${data.slice(0, at)}"${ANY}"${data.slice(at + length)}`);
    return other?.text === ANY && other.block === block;
  }

  /** What comes next may be more than text, whatever form it has. */
  forget(): void {
    if (this.#before && this.#isNew) this.#inVain++;
    this.#before = undefined;
  }
}

const NOTHING = Buffer.alloc(0);

/** Where a part stands in a text; undefined where it stands nowhere, or twice. */
const onlyPlace = (text: string, part: string): number | undefined => {
  const at = text.indexOf(part);
  return at === -1 || text.includes(part, at + 1) ? undefined : at;
};
