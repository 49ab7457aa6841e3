import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { files } from "./files.ts";

const OPENERS: Partial<Record<NodeJS.Platform, string>> = { darwin: "open", win32: "explorer" };
const PAGE = "sign-in.html";
const PREFIX = "agent-gateway-open-";
/** The validity of a sign-in code. */
const CODE_MS = 60_000;

/** Opens a link without a secret. Does nothing if there is no browser. */
export function openLink(link: string): Promise<void> {
  return startBrowser(link, () => {});
}

/**
 * Opens a link with a sign-in code. Every local user can read the arguments of a process, so the browser gets the path of a page that
 * only this user can read and that redirects to the link. The page is deleted when its code has expired.
 */
export async function openSecretLink(link: string, lifeMs: number = CODE_MS): Promise<void> {
  const folder = writePage(link);
  await removeLater(folder, lifeMs);
  await startBrowser(join(folder, PAGE), () => removePage(folder));
}

async function startBrowser(target: string, onMissing: () => void): Promise<void> {
  const { spawn } = await import("node:child_process");
  const opener = spawn(OPENERS[process.platform] ?? "xdg-open", [target], { stdio: "ignore", detached: true });
  opener.on("error", onMissing);
  opener.unref();
}

/** Sandboxed browsers, such as snaps, can read neither the folder for temporary files nor hidden folders of the home folder. */
function placesOfPages(): string[] {
  return process.platform === "linux" ? [homedir(), tmpdir()] : [tmpdir()];
}

/** Writes the page in a new folder that only this user can enter, and returns the folder. */
function writePage(link: string): string {
  for (const place of placesOfPages()) {
    removeOldPages(place);
    try {
      const folder = files.mkdtempSync(join(place, PREFIX));
      files.writeFileSync(join(folder, PAGE), pageOf(link), { mode: 0o600, flag: "wx" });
      return folder;
    } catch {} // It is not writable.
  }
  throw new Error("There is no folder to write the page for the browser in. Open the printed link.");
}

function pageOf(link: string): string {
  const escaped = link.replaceAll(/[&<>"']/g, (one) => `&#${one.charCodeAt(0)};`);
  return `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer"><title>Agent Gateway</title>
<meta http-equiv="refresh" content="0;url=${escaped}"><a href="${escaped}">Open the console</a>
`;
}

/** Starts a process that deletes the page later, because this command ends once the browser has started. */
async function removeLater(folder: string, ms: number): Promise<void> {
  const { spawn } = await import("node:child_process");
  const script = `setTimeout(() => { const fs = require("fs"); fs.rmSync(process.argv[2]); fs.rmdirSync(process.argv[1]); }, ${ms})`;
  const args = ["-e", script, folder, join(folder, PAGE)];
  spawn(process.execPath, args, { stdio: "ignore", detached: true, cwd: tmpdir() }).unref();
}

/** Deletes pages that were not deleted in time, for instance because of a shutdown. */
function removeOldPages(place: string): void {
  try {
    for (const name of files.readdirSync(place)) {
      if (!name.startsWith(PREFIX) || name.length !== PREFIX.length + RANDOM_CHARS) continue;
      const folder = join(place, name);
      const { mtimeMs, uid } = files.lstatSync(folder);
      if (uid === (process.getuid?.() ?? uid) && mtimeMs < Date.now() - 2 * CODE_MS) removePage(folder);
    }
  } catch {}
}
const RANDOM_CHARS = 6;

/** Deletes the page, and its folder if nothing else is in it. */
function removePage(folder: string): void {
  try {
    if (!files.lstatSync(folder).isDirectory()) return;
    files.rmSync(join(folder, PAGE), { force: true });
    files.rmdirSync(folder);
  } catch {}
}
