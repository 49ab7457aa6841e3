/** Which gateways there are, and what each of them has. */
export const GATEWAY_TABLES = /* sql */ `
-- By the database's clock. Those that were closed stay for a while: what they had is known until then.
create table gateways (
  node text primary key,
  agents text[] not null,
  seen double precision not null
) with (fillfactor = 50);
`;
