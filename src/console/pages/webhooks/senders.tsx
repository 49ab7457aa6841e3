import { now } from "#console/app/clock.ts";
import { about, count, plural } from "#console/lib/format.ts";
import { State } from "#console/parts/state.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Ago } from "#console/parts/time.tsx";
import type { MappingList } from "#generated/clients/typescript/src/rest.ts";

type WebhookToken = MappingList["tokens"][number];
type RateLimitUse = WebhookToken["rate_limit"];
type Sender = { key: string; name: string; secret: string; token?: WebhookToken; rate: RateLimitUse };

const COLUMNS: readonly Column<Sender>[] = [
  {
    name: "Sender",
    width: "26%",
    narrow: "first",
    cell: ({ name, secret }) => (
      <>
        {name} <span class="faint">{secret}</span>
      </>
    ),
  },
  { name: "Age", width: "220px", cell: ({ token }) => token && <Age token={token} /> },
  { name: "Rate limit", cell: ({ name, rate }) => <RateLimit of={name} rate={rate} /> },
];

/** Each sender with the age of its secret and the use of its rate limit. */
export function Senders({ tokens, mappings }: Pick<MappingList, "tokens" | "mappings">) {
  const senders: Sender[] = [
    ...tokens.map((token, n) => ({
      key: `token ${n}`,
      name: token.name,
      secret: "token",
      token,
      rate: token.rate_limit,
    })),
    ...mappings
      .filter(({ verify }) => verify !== null)
      .map(({ name, rate_limit }) => ({ key: `mapping ${name}`, name, secret: "signature", rate: rate_limit })),
  ];
  return senders.length === 0 ? (
    <p class="muted">
      No senders are configured. Set <code>webhooks.token</code>, or <code>verify</code> in a mapping.
    </p>
  ) : (
    <Table label="Senders, their rate limits and ages" rows={senders} columns={COLUMNS} keyOf={({ key }) => key} />
  );
}

function Age({ token }: { token: WebhookToken }) {
  const { age_days, max_age_days } = token;
  if (age_days === null)
    return (
      <span class="faint" title="Add `since` to the token in the configuration.">
        age unknown
      </span>
    );
  const words = `${plural(age_days, "day")} old (rotate every ${count(max_age_days)})`;
  return age_days >= max_age_days ? <State of="degraded" word={words} quiet /> : <span>{words}</span>;
}

function RateLimit({ of, rate }: { of: string; rate: RateLimitUse }) {
  if (!rate) return <span class="faint">no limit</span>;
  const resets = rate.resets_at === null ? 0 : Date.parse(rate.resets_at);
  const isFree = resets <= now.value;
  const used = isFree ? 0 : rate.limit - rate.remaining;
  return (
    <span class="line">
      <Meter label={`Requests of ${of}`} used={used} most={rate.limit} />
      <span>
        {count(used)} of {count(rate.limit)} per {about(rate.window_ms)}
      </span>
      {!isFree && (
        <span class="faint">
          resets <Ago at={resets} />
        </span>
      )}
    </span>
  );
}

/** A small bar that shows the used share of a limit. The caller shows the number next to it. */
function Meter({ label, used, most }: { label: string; used: number; most: number }) {
  return (
    <span
      class="meter"
      role="meter"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={most}
      aria-valuenow={used}
      data-full={used >= most}
    >
      <span style={{ width: `${Math.min(100, (100 * used) / most)}%` }} />
    </span>
  );
}
