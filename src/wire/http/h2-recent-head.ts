/** The head that came last on a connection: most send the same again and again, and what was made of it then can be used again. */
export class RecentHead {
  #raw: readonly string[] = [];
  #named: string[] = [];

  /** The head's names and values as HTTP/1.1 would have them. */
  namedOf(raw: readonly string[], host: string | undefined): string[] {
    if (!isEqual(raw, this.#raw)) {
      this.#raw = raw;
      this.#named = host === undefined ? [] : ["host", host];
      let isRepeated = false;
      for (let n = 0; n < raw.length; n += 2) {
        const [name, value] = [raw[n] as string, raw[n + 1] as string];
        if (name[0] === ":") continue;
        // The host is named already: by `:authority`, or as the first of its kind. Any other is a second one.
        if (name === "host" && !isRepeated && value.toLowerCase() === host?.toLowerCase()) isRepeated = true;
        else this.#named.push(name, value);
      }
    }
    return this.#named;
  }
}

const isEqual = (one: readonly string[], other: readonly string[]): boolean => {
  if (one.length !== other.length) return false;
  for (let n = 0; n < one.length; n++) if (one[n] !== other[n]) return false;
  return true;
};
