/** The names of an object's own fields as REST writes them, of one as RPC writes them. */
export function camelToSnake(value: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [name.replace(/[A-Z]/g, (sign) => `_${sign.toLowerCase()}`), inner]),
  );
}
