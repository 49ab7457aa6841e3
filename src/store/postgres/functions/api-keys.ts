/** API keys. */
export const KEY_FUNCTIONS = /* sql */ `
create or replace function create_key(
  in_id text, in_name text, in_prefix text, in_hash text, in_scopes json, in_created bigint, in_used bigint
) returns json language plpgsql as $$
begin
  insert into api_keys (key_id, name, prefix, hash, scopes, created_at, last_used_at)
  values (in_id, in_name, in_prefix, in_hash, in_scopes, in_created, in_used) on conflict do nothing;
  return json_build_object('changed', found, 'keys', found);
end
$$;

create or replace function revoke_key(in_id text) returns json language plpgsql as $$
begin
  delete from api_keys where key_id = in_id;
  return json_build_object('changed', found, 'keys', found);
end
$$;

create or replace function touch_key(in_id text, at_wall bigint) returns json language plpgsql as $$
begin
  update api_keys set last_used_at = at_wall where key_id = in_id and coalesce(last_used_at, 0) < at_wall;
  return json_build_object('keys', found);
end
$$;
`;
