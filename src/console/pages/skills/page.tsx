import { rest, rpc } from "#console/app/api.ts";
import { go, hrefOf } from "#console/app/router.ts";
import { whyNot } from "#console/app/session.ts";
import { say } from "#console/app/toasts.ts";
import { plural } from "#console/lib/format.ts";
import { Command } from "#console/parts/copy.tsx";
import { AskButton } from "#console/parts/dialog.tsx";
import { Empty, PageHead, Pending } from "#console/parts/page.tsx";
import { Split } from "#console/parts/split.tsx";
import { State } from "#console/parts/state.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Note } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import type { SkillList } from "#generated/clients/typescript/src/rest.ts";
import { SkillView } from "./skill-view.tsx";
import type { Skill } from "./trigger-form.tsx";

const COLUMNS: readonly Column<Skill>[] = [
  { name: "Skill", width: "180px", narrow: "first", cell: ({ skill_id }) => <span class="mono">{skill_id}</span> },
  {
    name: "Description",
    cell: ({ description }) => (
      <span dir="auto" title={description}>
        {description}
      </span>
    ),
  },
  {
    name: "Agents",
    width: "22%",
    cell: ({ agents }) => (agents.length === 0 ? <span class="faint">no agent</span> : agents.join(", ")),
  },
  {
    name: "Params",
    width: "72px",
    align: "end",
    narrow: "none",
    cell: ({ params_schema }) =>
      params_schema ? (
        Object.keys((params_schema.properties as object | undefined) ?? {}).length
      ) : (
        <span class="faint">any</span>
      ),
  },
];

/** The skills of the agents, each with a form that triggers it. */
function Page({ params: { skill: chosen } }: { params: Record<string, string> }) {
  const loaded = useLoaded(async (signal) => rest().skills.list({ signal }));
  const back = () => go(`/skills${location.search}`);
  const { skills, invalid = [] } = loaded.value.value ?? {};
  const skill = skills?.find(({ skill_id }) => skill_id === chosen);
  return (
    <>
      <PageHead
        title="Skills"
        count={skills && skills.length > 0 ? plural(skills.length, "skill") : undefined}
        of={loaded}
      >
        <ReloadSkills onRead={loaded.reload} />
      </PageHead>
      <Split
        back={back}
        list={
          <>
            <Pending of={loaded} rows={6} />
            {skills?.length === 0 && <NoSkills />}
            {skills !== undefined && skills.length > 0 && (
              <Table
                label="Skills, by name"
                rows={skills}
                columns={COLUMNS}
                keyOf={({ skill_id }) => skill_id}
                hrefOf={({ skill_id }) => hrefOf(`/skills/${encodeURIComponent(skill_id)}`)}
                selected={chosen}
              />
            )}
            <InvalidFolders invalid={invalid} />
          </>
        }
        inspector={
          chosen !== undefined &&
          skills &&
          (skill ? (
            <SkillView key={skill.skill_id} skill={skill} back={back} />
          ) : (
            <NoSkill id={chosen} invalid={invalid} />
          ))
        }
      />
    </>
  );
}

function NoSkill({ id, invalid }: { id: string; invalid: readonly InvalidFolder[] }) {
  const reason = invalid.find(({ folder }) => folder === id)?.reason;
  return (
    <Note tone="warning">
      <strong>{reason === undefined ? `No skill is named ${id}.` : `The skill ${id} is invalid.`}</strong>
      <p>
        {reason !== undefined && <span class="break">{reason}. </span>}
        <a href={hrefOf("/skills")}>All skills</a>
      </p>
    </Note>
  );
}

const FIRST_SKILL = `mkdir -p skills/summarise
cat > skills/summarise/SKILL.md <<'EOF'
---
name: summarise
description: Summarises a conversation in three lines.
---
Read the whole conversation, then write three lines.
EOF`;

function NoSkills() {
  return (
    <Empty title="No skills yet. A skill is a folder with a SKILL.md that teaches an agent a task.">
      <Command text={FIRST_SKILL} />
      <p class="muted">
        Run this in the folder of the configuration file, then press Reload. The gateway reads <code>./skills</code>, or
        the folders of <code>skills.dirs</code>. Every agent has all skills unless its <code>skills</code> setting lists
        some.
      </p>
    </Empty>
  );
}

type InvalidFolder = SkillList["invalid"][number];

/** The folders without a valid skill, with the reasons. */
function InvalidFolders({ invalid }: { invalid: readonly InvalidFolder[] }) {
  return invalid.length === 0 ? null : (
    <section class="section spaced" aria-labelledby="invalid-skills">
      <header>
        <h2 id="invalid-skills">{plural(invalid.length, "invalid folder")} (not loaded)</h2>
      </header>
      <ul class="recent">
        {invalid.map(({ path, reason }) => (
          <li key={`${path} ${reason}`}>
            <span class="line">
              <State of="failed" word="invalid" quiet /> <span class="mono break">{path}</span>
            </span>
            <p class="break">{reason}</p>
          </li>
        ))}
      </ul>
      <p class="hint">Fix the folder, then Reload.</p>
    </section>
  );
}

/** Reads the folders of skills through the reload of an agent, which reads all of them. Returns the number of invalid folders. */
async function readFolders(): Promise<number> {
  const { agents } = await rpc().agent.list();
  const [first] = agents;
  if (!first) throw new Error("No agent is configured.");
  const { skills, problems } = await rpc().agent.reload({ agentName: first.agentName });
  if (problems.length > 0)
    say(`The configuration has ${plural(problems.length, "problem")}. The previous configuration stays active.`, "bad");
  return skills.skipped.length;
}

/** Asks before the folders are reloaded: new turns use the result. */
function ReloadSkills({ onRead }: { onRead: () => Promise<void> }) {
  const run = async () => {
    const invalid = await readFolders();
    say(invalid === 0 ? "Reloaded. Every folder is valid." : `Reloaded. ${plural(invalid, "invalid folder")}.`);
    await onRead();
  };
  return (
    <AskButton word="Reload" why={whyNot("system.reload")} title="Reload the skills?" act="Reload" run={run}>
      <p>
        Reloads the folders in <code>skills.dirs</code> and the configuration of the first agent. New turns use the new
        version.
      </p>
    </AskButton>
  );
}

export default Page;
