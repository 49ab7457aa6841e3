import { rawFetch } from "#console/app/api.ts";
import { choiceOf, hrefOf, query, setQuery } from "#console/app/router.ts";
import { identity } from "#console/app/session.ts";
import { type ApiCall, restCalls, rpcCalls, whyNotCallable } from "#console/lib/api-calls.ts";
import { plural } from "#console/lib/format.ts";
import { FilterSelect, Filters, FilterText } from "#console/parts/fields.tsx";
import { Empty, PageHead, Pending } from "#console/parts/page.tsx";
import { Split } from "#console/parts/split.tsx";
import { type Column, Table } from "#console/parts/table.tsx";
import { Note } from "#console/parts/trouble.tsx";
import { useLoaded } from "#console/parts/use.ts";
import { CallForm, Method } from "./call-form.tsx";
import "./api.css";

async function readSpec(path: string, signal: AbortSignal): Promise<Record<string, unknown>> {
  const response = await rawFetch(path, { signal });
  if (!response.ok) throw new Error(`The gateway answered ${response.status} at ${path}.`);
  return (await response.json()) as Record<string, unknown>;
}

/** The calls of both specs, as this gateway serves them. */
async function readCalls(signal: AbortSignal): Promise<ApiCall[]> {
  const [rest, rpc] = await Promise.all([readSpec("/openapi.json", signal), readSpec("/openrpc.json", signal)]);
  return [...restCalls(rest), ...rpcCalls(rpc)];
}

const SURFACES = [
  ["rest", "REST"],
  ["rpc", "RPC"],
] as const;

const COLUMNS: readonly Column<ApiCall>[] = [
  { name: "Call", width: "172px", narrow: "first", cell: ({ id }) => <span class="mono">{id}</span> },
  {
    name: "Request",
    cell: (call) => (
      <span class="mono" title={`${call.method} ${call.path}`}>
        <Method of={call} /> {call.path}
      </span>
    ),
  },
  { name: "Description", width: "30%", cell: ({ summary }) => summary },
  {
    name: "Access",
    width: "108px",
    narrow: "none",
    cell: (call) => {
      const why = whyNotCallable(call, identity.value);
      if (why !== undefined) return <span title={why}>other token</span>;
      return call.identities.length === 0 && <span class="faint">no token</span>;
    },
  },
];

function addressOf(id: string): string {
  const next = new URLSearchParams(query.value);
  next.set("call", id);
  return hrefOf(`/api?${next}`);
}

function holds({ id, path, summary, group }: ApiCall, text: string): boolean {
  return `${id} ${path} ${summary} ${group}`.toLowerCase().includes(text.toLowerCase());
}

/** Every call of the gateway, to try with the signed-in token. */
function Page() {
  const loaded = useLoaded(readCalls);
  const [chosen, text] = ["call", "q"].map((name) => query.value.get(name) ?? "");
  const surface = choiceOf(query.value, "surface", SURFACES);
  const back = () => setQuery({ call: undefined }, { replace: false });
  const calls = (loaded.value.value ?? []).filter(
    (call) => (!surface || call.surface === surface) && (!text || holds(call, text)),
  );
  const call = loaded.value.value?.find(({ id }) => id === chosen);
  return (
    <>
      <PageHead title="API" count={calls.length > 0 ? plural(calls.length, "call") : undefined}>
        <nav class="line" aria-label="Reference">
          <a href="/docs" target="_blank" rel="noreferrer">
            Reference
          </a>
          <a href="/openapi.json" target="_blank" rel="noreferrer">
            openapi.json
          </a>
          <a href="/openrpc.json" target="_blank" rel="noreferrer">
            openrpc.json
          </a>
        </nav>
      </PageHead>
      <Split
        back={back}
        list={
          <>
            <Filters names={["surface", "q"]}>
              <FilterSelect name="surface" word="Surface" values={SURFACES} />
              <FilterText name="q" word="Find" placeholder="deliveries" />
            </Filters>
            <Pending of={loaded} rows={12} />
            {loaded.value.value && calls.length === 0 && <Empty title="No matches." />}
            {calls.length > 0 && (
              <Table
                label="Calls of the gateway"
                rows={calls}
                columns={COLUMNS}
                keyOf={({ id }) => id}
                hrefOf={({ id }) => addressOf(id)}
                selected={chosen}
              />
            )}
          </>
        }
        inspector={
          call ? (
            <CallForm key={call.id} call={call} back={back} />
          ) : (
            chosen &&
            loaded.value.value && (
              <Note tone="warning">
                <strong>No call is named {chosen}.</strong>
                <p>
                  <button type="button" class="link" onClick={back}>
                    All calls
                  </button>
                </p>
              </Note>
            )
          )
        }
      />
    </>
  );
}

export default Page;
