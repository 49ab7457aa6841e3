/** Until when a key is good, and the key that was made in its place; null where there is none. */
export const KEY_COLUMNS = /* sql */ `
alter table api_keys add column expires_at bigint, add column replaced_by text;
`;
