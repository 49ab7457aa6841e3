import type { Command } from "commander";
import { addBackup } from "./backup.ts";
import { addCheck } from "./check.ts";
import { addServe } from "./serve.ts";
import { addSessions } from "./sessions.ts";

/** Every command, in the order in which the help lists them. */
export const addCommands = (program: Command): void => {
  program.commandsGroup("Run a gateway:");
  addServe(program);
  addCheck(program);
  addBackup(program);
  program.commandsGroup("Look after it:");
  addSessions(program);
};
