import { createRequire } from "node:module";
import type Libsql from "libsql";
import { makeOwn } from "./own-file.ts";

export type Driver = InstanceType<typeof Libsql>;

/** The driver is CommonJS, and an optional dependency: it is loaded only where a store of this kind is opened. Makes the file where none is. */
export const openDriver = (path: string): Driver => {
  const Driver = createRequire(import.meta.url)("libsql") as typeof Libsql;
  makeOwn(path);
  return new Driver(path);
};
