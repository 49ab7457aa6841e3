/** The head that came last on a connection: most send the same again and again, and what was made of it then can be used again. */
export class RecentHead {
  #raw: readonly string[] = [];
  #named: string[] = [];

  /** The head's names and values as HTTP/1.1 would have them. */
  namedOf(raw: readonly string[], host: string | undefined): string[] {
    if (!isEqual(raw, this.#raw)) {
      this.#raw = raw;
      this.#named = host === undefined ? [] : ["host", host];
      for (let n = 0; n < raw.length; n += 2) {
        const [name, value] = [raw[n] as string, raw[n + 1] as string];
        if (name[0] !== ":" && name !== "host") this.#named.push(name, value);
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
