/**
 * Shell commands that `sh`, `bash`, `zsh` and `fish` read in the same way, and that execute none of the quoted bytes. Printable text is not
 * changed. Everything else is written by `printf` from octal escapes: a control character in a command could end a paste early, and no other
 * notation works in all of these shells.
 */

const UTF8 = new TextEncoder();
const STRICT = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
/** One character that is shown as itself: not a control, format or private character, and not a space other than the usual one. */
const PRINTABLE = /^(?: |[^\p{C}\p{Z}])$/u;

type Piece = { isPrintable: boolean; text: string };

/** The printable characters of the bytes, and octal escapes for the other bytes. */
function piecesOf(bytes: Uint8Array): Piece[] {
  let text: string | undefined;
  try {
    text = STRICT.decode(bytes);
  } catch {}
  if (text !== undefined)
    return Array.from(text, (one) =>
      PRINTABLE.test(one) ? { isPrintable: true, text: one } : { isPrintable: false, text: octalOf(UTF8.encode(one)) },
    );
  return Array.from(bytes, (byte) => {
    const isPrintable = byte >= 0x20 && byte < 0x7f;
    return { isPrintable, text: isPrintable ? String.fromCharCode(byte) : octalOf([byte]) };
  });
}

function octalOf(bytes: Iterable<number>): string {
  return Array.from(bytes, (byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
}

export function isPrintable(bytes: Uint8Array): boolean {
  return piecesOf(bytes).every((piece) => piece.isPrintable);
}

/**
 * A printable text as one word. It stands in single quotes, but for a quote, and for a backslash that fish would take for the start of an escape:
 * these stand in double quotes, where all shells read them alike.
 */
function quoted(text: string): string {
  return (
    text.replaceAll(/((?:[^\\']|\\(?=[^\\']))+)|[\\']+/g, (run, usual?: string) =>
      usual === undefined ? `"${run.replaceAll("\\", "\\\\")}"` : `'${usual}'`,
    ) || "''"
  );
}

/** Any bytes as one word of `sh`, without NUL, and without line feeds at their end. fish 3.6 misreads the quotes after such a substitution. */
function wordOfSh(bytes: Uint8Array): string {
  return isPrintable(bytes) ? quoted(STRICT.decode(bytes)) : `"$(${printfOf(bytes.filter((byte) => byte !== 0))})"`;
}

/** A command that writes the bytes to its standard output. A builtin writes them, so that their length has no limit. */
export function printfOf(bytes: Uint8Array): string {
  const format = piecesOf(bytes)
    .map(({ isPrintable, text }) =>
      isPrintable ? text.replaceAll(/[%\\']/g, (one) => octalOf(UTF8.encode(one))) : text,
    )
    .join("")
    .replaceAll(/\\012/g, "\\n")
    // Some shells take it for an option.
    .replace(/^-/, "\\055");
  return `printf '${format}'`;
}

type Write = (word: (value: string | Uint8Array) => string, variable: string) => string;

/**
 * A command with words for `sent`, and with the value of a variable. `write` puts it together; lines end in ` \`. Where a word is not printable, `sh`
 * runs the command, whatever the reader's shell.
 */
export function commandOf(sent: readonly Uint8Array[], variable: string | undefined, write: Write): string {
  if (sent.every(isPrintable)) return write((value) => quoted(textOf(value)), `$${variable}`);
  const command = write((value) => wordOfSh(bytesOf(value)), "$1").replaceAll(" \\\n  ", " ");
  return `sh -c ${quoted(command)}${variable === undefined ? "" : ` sh "$${variable}"`}`;
}

function textOf(value: string | Uint8Array): string {
  return typeof value === "string" ? value : STRICT.decode(value);
}
function bytesOf(value: string | Uint8Array): Uint8Array {
  return typeof value === "string" ? UTF8.encode(value) : value;
}
