/** The beginnings of messages and replies, and the announcement of a turn. Gateways of version 6 leave these columns null. */
export const PREVIEWS = /* sql */ `
alter table sessions add column preview text;
alter table turns
  add column preview text,
  add column reply_preview text,
  add column announcement text;
`;
