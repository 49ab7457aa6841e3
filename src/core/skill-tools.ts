import type { Tool } from "#tools/tool.ts";
import type { Agent } from "./agents.ts";
import type { Skills } from "./skills.ts";

/** The tools by which a model loads the skills of its agent, and reads the files in their folders. */
export const skillTools = (_skills: Skills, _agent: Agent): readonly Tool[] => [];
