export function answerOf(message: { id?: unknown; method: string; params?: unknown }, how: string): object | undefined;
export const requestOf: (method: string, n: number) => string;
