import { rest } from "#console/app/api.ts";
import { go, hrefOf } from "#console/app/router.ts";
import { plural } from "#console/lib/format.ts";
import { Command } from "#console/parts/copy.tsx";
import { Empty, PageHead, Pending } from "#console/parts/page.tsx";
import { Split } from "#console/parts/split.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Note } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import { type InvalidFolder, InvalidFolders, ReloadSkills } from "./folders.tsx";
import { SkillView } from "./skill-view.tsx";
import "./skills.css";
import type { Skill } from "./trigger-form.tsx";

const COLUMNS: readonly Column<Skill>[] = [
  { name: "Skill", width: "180px", narrow: "first", cell: ({ skill_id }) => <span class="mono">{skill_id}</span> },
  {
    name: "Description",
    cell: ({ description }) => (
      <span class="one-line" title={description}>
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
        updated={loaded.at.value}
        refresh={() => void loaded.reload()}
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

export default Page;
