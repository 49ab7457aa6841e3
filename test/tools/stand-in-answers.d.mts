type Message = { id?: unknown; method: string; params?: unknown };

export const MODERN: string;
export function answerOf(message: Message, how: string, revision?: string): object | undefined;
export function acknowledgementOf(message: Message): object;
export const requestOf: (method: string, n: number) => string;
