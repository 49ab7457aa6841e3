import { Command } from "#console/parts/copy.tsx";
import { Empty } from "#console/parts/page.tsx";

const EXAMPLE = `webhooks: {
  token: "\${WEBHOOK_TOKEN}",
  mappings: {
    deploy: {
      match: { "body.kind": "deploy" },
      message: "Deploy of {body.service} {body.state}",
      session: "webhook:deploys",
    },
  },
}`;

/** The tester's place before there is a mapping. */
export function NoMappings() {
  return (
    <Empty title="There is no mapping yet. A mapping turns a sender's payload into a message for an agent.">
      <Command text={EXAMPLE} />
      <p class="muted">Put this into the configuration file. The gateway applies the change automatically.</p>
    </Empty>
  );
}
