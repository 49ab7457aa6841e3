/** Node's files, without the import that would cost each start of a command the making of all their exports. */
export const files = process.getBuiltinModule("node:fs");
