/** What has something to write at the end of this turn of the event loop. */
export type Writing = { write(): void };

/**
 * Gathers what is to be sent in one turn of the event loop: of each connection all of it becomes one write, as a write costs more than
 * most answers.
 */
export const createWriter = () => {
  let writing: Writing[] = [];
  let first: (() => void)[] = [];
  let isDue = false;

  const flush = (): void => {
    // What comes from here on has a turn of its own.
    isDue = false;
    const before = first;
    first = [];
    for (const call of before) call();
    const now = writing;
    writing = [];
    for (const one of now) one.write();
  };
  const callSoon = (): void => {
    if (isDue) return;
    isDue = true;
    setImmediate(flush);
  };

  return {
    add(one: Writing): void {
      writing.push(one);
      callSoon();
    },
    /** Calls before the writes, so that what is pushed then goes with them. */
    beforeWrites(call: () => void): void {
      first.push(call);
      callSoon();
    },
  };
};

export type Writer = ReturnType<typeof createWriter>;
