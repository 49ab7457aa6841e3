import { createRequire } from "node:module";
import type Libsql from "libsql";

export type Driver = InstanceType<typeof Libsql>;

/** The driver is CommonJS, and an optional dependency: it is loaded only where a store of this kind is opened. */
export const openDriver = (path: string): Driver => {
  const Driver = createRequire(import.meta.url)("libsql") as typeof Libsql;
  return new Driver(path);
};
