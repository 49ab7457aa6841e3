import type { Command } from "commander";
import { calling } from "../calling.ts";
import { cut, fields, oneLine, printItem, printList } from "../output.ts";
import { say } from "../terminal.ts";
import { fieldsOf, jsonOf, textOf } from "../values.ts";

export function addSkills(program: Command): void {
  const skills = program
    .command("skills")
    .summary("skills: list, show, trigger")
    .description("The skills of the agents.");

  calling(
    skills.command("list").summary("list the skills").addHelpText("after", "\nExample:\n  agent-gateway skills list"),
    async ({ gateway, options, signal }) => {
      const list = await gateway.skills.list({ signal });
      printList(options, list, {
        items: list.skills,
        id: ({ skill_id }) => skill_id,
        none: "No skills. docs/quickstart.md shows how to write one.",
        columns: [
          { title: "SKILL", of: ({ skill_id }) => skill_id },
          { title: "AGENTS", of: ({ agents }) => agents.join(" ") },
          { title: "DOES", of: ({ description }) => cut(oneLine(description), 50) },
        ],
      });
      if (!options.json)
        for (const { folder, reason } of list.invalid) say(`The skill in ${folder} is left out: ${oneLine(reason)}`);
    },
  );

  calling(
    skills
      .command("show")
      .summary("show a skill with its instructions")
      .argument("<skill>", "its id")
      .addHelpText("after", "\nExample:\n  agent-gateway skills show summarise-thread"),
    async ({ gateway, options, signal }, id = "") => {
      const skill = await gateway.skills.get(id, { signal });
      printItem(options, skill, id, () => {
        const { description, agents, params_schema: params, instructions } = skill;
        const head = fields({
          skill: id,
          does: oneLine(description),
          agents: agents.join(", "),
          params: params && JSON.stringify(params),
        });
        return `${head}\n\n${instructions}`;
      });
    },
  );

  calling<{ agent?: string; session?: string; user?: string; params?: string }, [string, string[]]>(
    skills
      .command("trigger")
      .summary("trigger a skill, and print the reply")
      .argument("<skill>", "its id")
      .argument("[params...]", "its parameters: name=value")
      .option("--params <json>", "its parameters as JSON; @FILE for a file, - for standard input")
      .option("--agent <name>", "the agent (default: the gateway's)")
      .option("--session <id>", "the session to continue")
      .option("--user <name>", "the person who sends the message; chooses the session")
      .addHelpText(
        "after",
        "\nExamples:\n  agent-gateway skills trigger summarise-thread length=short\n  agent-gateway skills trigger report --params @params.json",
      ),
    async ({ gateway, options, signal }, id, pairs) => {
      const { agent, session, user } = options;
      const given = options.params === undefined ? {} : (jsonOf(textOf(options.params), "--params") as object);
      const body = {
        skill_id: id,
        params: { ...given, ...fieldsOf(pairs) },
        ...(agent && { agent }),
        ...(session && { session_id: session }),
        ...(user && { user_id: user }),
      };
      const { printStream } = await import("../streaming.ts");
      await printStream(gateway.skills.stream(body, { signal }), options);
    },
  );
}
