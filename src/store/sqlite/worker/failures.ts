import { isDamage } from "../text.ts";

/**
 * The meaning of a driver's error for the engine:
 * - `full`: no room. The writes are not kept; the connection is as good as before.
 * - `busy`: another process holds the write lock.
 * - `lost`: nothing that this connection says can be relied on any more. It is never written on again.
 * - `damaged`: one of the calls has read a value that is no text, or no JSON.
 * - `unexpected`: an error of ours, in one of the calls.
 */
type FailureKind = "full" | "busy" | "lost" | "damaged" | "unexpected";

/** Refuses to open a file, in a sentence for the person who starts the gateway. */
export class OpenFailure extends Error {}

export function kindOf(error: unknown): FailureKind {
  const code = codeOf(error);
  if (code === "SQLITE_FULL") return "full";
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) return "busy";
  if (/^SQLITE_(IOERR|CORRUPT|NOTADB|READONLY|CANTOPEN|PROTOCOL|NOMEM)/.test(code)) return "lost";
  if (isDamage(error)) return "damaged";
  return "unexpected";
}

/** The reason why a file cannot be opened, in words. */
export function failureOf(error: unknown, path: string): unknown {
  if (error instanceof OpenFailure) return error;
  const code = codeOf(error);
  const said = error instanceof Error ? error.message : String(error);
  const of = (why: string) => new OpenFailure(`The SQLite file ${path} ${why}`, { cause: error });
  if (code === "SQLITE_NOTADB") return of("is not a database.");
  if (isDamage(error)) return of("is damaged (a record differs from what was written). Restore a backup.");
  if (code.startsWith("SQLITE_CORRUPT")) return of(`is damaged (${said}). Restore a backup.`);
  if (code.startsWith("SQLITE_READONLY")) return of("cannot be written to: it, or its folder, is read-only.");
  if (/^SQLITE_(BUSY|LOCKED)/.test(code)) return of("is locked by another process.");
  if (code === "SQLITE_FULL") return of("cannot be opened: the disk is full.");
  if (code.startsWith("SQLITE_IOERR")) return of(`cannot be read or written (${said}).`);
  if (code.startsWith("SQLITE_CANTOPEN") || said.startsWith("ConnectionFailed")) {
    return of("cannot be opened: its folder is missing, or the gateway may not read and write it.");
  }
  return error;
}

function codeOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : "";
}
