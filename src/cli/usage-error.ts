/** A mistake of the person at the terminal: a sentence, no stack. */
export class UsageError extends Error {}
