import { createHash } from "node:crypto";

const LONGEST = 64;
const SUFFIX = 6;

/**
 * A tool's name as models take it, 64 letters, digits, `_` and `-`: its server's and its own. Where that cuts or changes it, the end tells it
 * from others that would become the same.
 */
export const modelNameOf = (server: string, tool: string): string => {
  const whole = `${server}__${tool}`;
  const plain = whole.replace(/[^A-Za-z0-9_-]/g, "_");
  if (plain === whole && plain.length <= LONGEST) return plain;
  const told = createHash("sha256").update(whole).digest("hex").slice(0, SUFFIX);
  return `${plain.slice(0, LONGEST - SUFFIX - 1)}_${told}`;
};
