/** API keys. */
export const KEY_FUNCTIONS = /* sql */ `
-- A new key; with \`old_id\` in the place of that one, which then ends at \`old_ends\` unless it ends sooner.
create or replace function keep_key(in_key json, old_id text, old_ends bigint) returns json language plpgsql as $$
begin
  if old_id is not null then
    update api_keys set replaced_by = in_key->>'keyId', expires_at = least(coalesce(expires_at, old_ends), old_ends)
    where key_id = old_id and replaced_by is null;
    if not found then
      return json_build_object('changed', false, 'keys', false);
    end if;
  end if;
  insert into api_keys (key_id, name, prefix, hash, scopes, created_at, last_used_at, expires_at)
  values (in_key->>'keyId', in_key->>'name', in_key->>'prefix', in_key->>'hash', in_key->'scopes', (in_key->>'createdAt')::bigint,
    (in_key->>'lastUsedAt')::bigint, (in_key->>'expiresAt')::bigint) on conflict do nothing;
  return json_build_object('changed', found, 'keys', found);
end
$$;

-- For gateways of the version before, whose keys have no end.
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
