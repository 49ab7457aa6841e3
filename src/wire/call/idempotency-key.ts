/** 1 to 255 printable ASCII characters, no blank at either end. */
export const isIdempotencyKey = (key: string): boolean => /^[!-~](?:[ -~]{0,253}[!-~])?$/.test(key);
