import { withoutKeys } from "#kit/clean-words.ts";
import { jsonBeginning } from "#kit/json-beginning.ts";
import { hideSecretFields } from "#kit/secret-fields.ts";
import type { ToolCall } from "#store/store.ts";
import type { Note } from "./run-turn.ts";

/** The most tool calls that are stored with a reply. */
const MOST_CALLS = 100;
const NAME_CHARACTERS = 200;
const REASON_CHARACTERS = 500;
/** The most bytes of UTF-8 of the arguments of a call, and of its result, that are stored. A longer text ends with the mark. */
const CONTENT_BYTES = 4096;
const CUT_MARK = "…";
/** The most bytes of the arguments and results of one attempt together. From the first call that does not fit, calls are stored without them. */
const ALL_CONTENT_BYTES = 65_536;
/** Secrets are searched this many characters beyond the cut, so that no first part of a secret stays. */
const SEARCHED_BEYOND = 16_384;

type Detail = Note["detail"];
type Options = { isContentStored: boolean; hide: (text: string) => string };

/** The tool calls of one attempt. */
export class ToolCalls {
  /** Undefined until a tool is called. */
  list: ToolCall[] | undefined = undefined;
  #contentBytes = 0;
  /** True after a call that did not fit. The content of later calls is not read. */
  #isFull = false;

  /**
   * Adds a call that ended at `now`. Returns its detail for the timeline, with `at`, the start of the call. Arguments and results are cut and have
   * no secrets; texts of a tool server may have any length and content.
   */
  add({ arguments: args, result, ...detail }: Detail, now: number, options: Options): Detail {
    const { tool, ok, ms, reason } = detail;
    const at = now - Number(ms);
    const content = this.#contentOf({ args, result }, options);
    this.list ??= [];
    if (this.list.length < MOST_CALLS) {
      const call: ToolCall = { tool: String(tool).slice(0, NAME_CHARACTERS), ok: ok === true, ms: Number(ms), at };
      if (typeof reason === "string") call.reason = beginningOf(reason, REASON_CHARACTERS);
      this.list.push(Object.assign(call, content));
    }
    return { ...detail, at: new Date(at).toISOString(), ...content };
  }

  #contentOf({ args, result }: { args: unknown; result: unknown }, { isContentStored, hide }: Options) {
    if (!isContentStored || this.#isFull) return {};
    const content: Pick<ToolCall, "arguments" | "result"> = {};
    if (args !== undefined) content.arguments = shorten(args, hide);
    if (result !== undefined) content.result = shorten(result, hide);
    const bytes = Buffer.byteLength((content.arguments ?? "") + (content.result ?? ""));
    this.#isFull = this.#contentBytes + bytes > ALL_CONTENT_BYTES;
    if (this.#isFull) return {};
    this.#contentBytes += bytes;
    return content;
  }
}

/** Text as it is, other values as JSON. Secrets are hidden before the text is cut, including a secret that the cut divides: the search recognises the mark. */
function shorten(value: unknown, hide: (text: string) => string): string {
  const { text, isCut } = searchedPart(value);
  const clean = hide(withoutKeys(hideSecretFields(isCut ? text + CUT_MARK : text)));
  const shown = isCut && clean.endsWith(CUT_MARK) ? clean.slice(0, -CUT_MARK.length) : clean;
  const room = Buffer.alloc(CONTENT_BYTES);
  const { read, written } = new TextEncoder().encodeInto(shown, room);
  return room.toString("utf8", 0, written) + (isCut || read < shown.length ? CUT_MARK : "");
}

/** The part of a value that is searched for secrets. The work does not depend on the size of the value. */
function searchedPart(value: unknown): { text: string; isCut: boolean } {
  const most = CONTENT_BYTES + SEARCHED_BEYOND;
  const { json, isCut } = typeof value === "string" ? { json: value, isCut: false } : jsonBeginning(value, most);
  return { text: json.slice(0, most), isCut: isCut || json.length > most };
}

function beginningOf(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - CUT_MARK.length)}${CUT_MARK}`;
}
