// biome-ignore-all lint/suspicious/noTemplateCurlyInString: references in a configuration look like that.

/** A configuration to start from. It works at once with every backend, also with `echo`. */
export type StartingPoint = {
  label: string;
  hint: string;
  /** The instructions for a model. */
  instructions: string;
  /** The variables of gateway.env that get a new secret, besides those of every configuration. */
  secrets: readonly string[];
  /** The mappings of `webhooks`, as they stand in the file. */
  mappings?: string;
  /** More sections of the file. */
  sections?: string;
  /** A file for the command that shows the configuration working. */
  sample?: { name: string; text: string };
  /** The command that shows it working, and what it does. `sample` is the path of the sample. */
  trial?: { title: string; command: (sample: string) => string };
  /** The next changes for real use, apart from the backend. */
  changes: readonly string[];
};

export type StartingPointName = "empty" | "github-review" | "daily-brief";

const CHANNELS = `
  // channels: { team: { type: "slack", url: "\${SLACK_WEBHOOK_URL}" } },      // docs/announcements.md`;
const TO_SLACK = "uncomment channel and channels in gateway.json5, and put SLACK_WEBHOOK_URL into gateway.env";

export const STARTING_POINTS: Record<StartingPointName, StartingPoint> = {
  empty: {
    label: "An empty configuration",
    hint: "one agent",
    instructions: "You are a helpful assistant. Answer briefly.",
    secrets: [],
    changes: [],
  },
  "github-review": {
    label: "A GitHub review bot",
    hint: "reviews pull requests, with one conversation for each",
    instructions: "You review pull requests. Say in a few sentences what could break and what to test.",
    secrets: ["GITHUB_SECRET"],
    mappings: `
      "github-review": {                     // its address: /hooks/github-review
        match: {
          "headers.x-github-event": "pull_request",
          "body.action": ["opened", "reopened", "ready_for_review", "synchronize"],
          "body.pull_request.draft": false,
          // "body.repository.full_name": ["ada/clock"],     // only these repositories
        },
        message: "Review pull request {body.number} of {body.repository.full_name} by {body.pull_request.user.login}: {body.pull_request.title}\\nChanges: {body.pull_request.diff_url}\\n\\n{body.pull_request.body}",
        // One conversation for each pull request. Pushes within 10 s of each other start one turn.
        session: "webhook:pr:{body.repository.full_name}:{body.number}",
        coalesce: { key: "{body.repository.full_name}#{body.number}", window: "10s" },
        verify: { type: "github", secret: "\${GITHUB_SECRET}" },
        // channel: "team", delivery: "announce",            // sends the review to the channel below
      },`,
    sample: { name: "pull-request.json", text: `${JSON.stringify(samplePullRequest(), null, 2)}\n` },
    trial: {
      title: "a sample pull request, signed as GitHub does (its review starts after 10 s)",
      command: (sample) => `hooks send ${sample} --as github --mapping github-review --event pull_request`,
    },
    sections: CHANNELS,
    changes: [
      "In the settings of your repository, Webhooks, add https://<your gateway>/hooks/github-review with the content type application/json, the event Pull requests, and the value of GITHUB_SECRET in gateway.env as the secret.",
      "Uncomment body.repository.full_name in gateway.json5 to name the repositories that are reviewed.",
      `To get the review in Slack, ${TO_SLACK}.`,
    ],
  },
  "daily-brief": {
    label: "A daily brief",
    hint: "writes a text every weekday at nine",
    instructions: "You write the brief of a team: what is new, what is due, what is at risk. At most ten lines.",
    secrets: [],
    sections: `
  schedules: {
    brief: {
      cron: "0 9 * * 1-5",                   // at nine from Monday to Friday
      timeZone: ${JSON.stringify(timeZoneHere())},
      message: "Write the brief of today.",
      // session: "schedule:brief",          // one conversation for all briefs; without it each has its own
      // channel: "team", delivery: "announce",              // sends the brief to the channel below
    },
  },${CHANNELS}`,
    trial: { title: "a brief now", command: () => "schedules run brief" },
    changes: [
      "Check cron and timeZone of the schedule brief in gateway.json5, and adapt its message.",
      `To get the brief in Slack, ${TO_SLACK}.`,
    ],
  },
};

function timeZoneHere(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
}

/** The parts of GitHub's event that the mapping reads. */
function samplePullRequest(): object {
  const url = "https://github.com/ada/clock/pull/7";
  return {
    action: "opened",
    number: 7,
    pull_request: {
      html_url: url,
      diff_url: `${url}.diff`,
      title: "Ring on the hour",
      body: "The clock rings now. The tests are still missing.",
      draft: false,
      user: { login: "ada" },
    },
    repository: { full_name: "ada/clock" },
  };
}
