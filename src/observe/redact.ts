/** This stands where a secret would have stood. */
export const HIDDEN = "[hidden]";

/** A shorter text is no secret: hiding it would cut every line to pieces. */
const SHORTEST = 4;
/** The newest written forms are kept, up to this many: tokens rotate, and memory must not grow with that. */
const MOST_FORMS = 4096;

const secretKey = /(?:token|secret|password|passwd|cookie|authorization|apikey|signature|privatekey)s?$/;

/** Few names of fields exist; a stranger's are not kept. */
const MOST_KEYS = 1000;
const secretKeys = new Map<string, boolean>();

/** True if a field of this name holds a secret, whatever its value: `Authorization`, `x-gateway-token`, `client_secret`. */
export const isSecretKey = (key: string): boolean => {
  const known = secretKeys.get(key);
  if (known !== undefined) return known;
  const isSecret = secretKey.test(key.toLowerCase().replaceAll(/[-_]/g, ""));
  if (secretKeys.size < MOST_KEYS) secretKeys.set(key, isSecret);
  return isSecret;
};

/** The ways a secret comes to stand in a line: bare, escaped in JSON, in a URL, and in base64 as a WebSocket subprotocol. */
const formsOf = (secret: string): string[] => {
  const bytes = Buffer.from(secret);
  const forms = [secret, bytes.toString("base64url"), bytes.toString("base64").replace(/=+$/, "")];
  try {
    forms.push(encodeURIComponent(secret));
  } catch {
    // a lone surrogate has no form in a URL
  }
  return forms.flatMap((form) => [form, JSON.stringify(form).slice(1, -1)]);
};

interface Redactor {
  /** From now on these secrets appear in no line. */
  hide(secrets: Iterable<string>): void;
  /** The text with every hidden secret replaced. */
  text(text: string): string;
  /** A line of JSON with every hidden secret replaced. It stays JSON, unless a secret spans its punctuation. */
  jsonLine(line: string): string;
  /** The length of the longest form: code that cuts a text keeps this much beyond the cut until the text is redacted. */
  longest(): number;
}

const escaped = (text: string): string => text.replace(/[$()*+./?[\\\]^{|}-]/g, "\\$&");

export const createRedactor = (): Redactor => {
  const known = new Set<string>();
  let forms: RegExp | undefined;
  let longest = 0;

  const text = (value: string): string => (forms ? value.replace(forms, HIDDEN) : value);
  const hideIn = (_key: string, value: unknown): unknown => {
    if (typeof value === "string") return text(value);
    return typeof value === "number" && text(String(value)) !== String(value) ? HIDDEN : value;
  };

  return {
    hide: (secrets) => {
      for (const secret of secrets) {
        if (secret.length < SHORTEST) continue;
        for (const form of formsOf(secret)) {
          known.delete(form); // a form that is seen again is the newest again
          known.add(form);
        }
      }
      for (const form of [...known].slice(0, -MOST_FORMS)) known.delete(form);
      const all = [...known].sort((a, b) => b.length - a.length); // the longest first: one secret may begin with another
      longest = all[0]?.length ?? 0;
      forms = all.length === 0 ? undefined : new RegExp(all.map(escaped).join("|"), "g");
    },
    text,
    jsonLine: (line) => {
      const clean = text(line);
      if (clean === line) return line;
      try {
        return text(`${JSON.stringify(JSON.parse(line, hideIn))}\n`);
      } catch {
        return clean;
      }
    },
    longest: () => longest,
  };
};
