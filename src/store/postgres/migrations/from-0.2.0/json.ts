/**
 * A record of a later version is JSON, composed as text: PostgreSQL refuses to read JSON with texts that callers may send (U+0000 and lone surrogates), but
 * stores it.
 */

/** An expression whose value is the text of a JSON value; null leaves the field out. */
export type Json = string;

/** A plain text, a number with a fraction, a boolean, or an array of numbers. */
export function value(column: string): Json {
  return `to_json(${column})::text`;
}
/** A text from callers, which may be encoded: then it is JSON after its first character. */
export function free(column: string): Json {
  return `case when ascii(${column}) = 1 then substr(${column}, 2) else to_json(${column})::text end`;
}
export function whole(column: string): Json {
  return `(${column})::text`;
}
export function object(fields: { readonly [name: string]: Json }): Json {
  const parts = Object.entries(fields).map(([name, json]) => `'"${name}":' || (${json})`);
  return `'{' || concat_ws(',', ${parts.join(", ")}) || '}'`;
}
/** A record of version 0.2.0 as `json`. If it cannot be composed, the error names the table and the key. */
export function record(table: string, key: string, of: Json | Parameters<typeof object>[0]): string {
  return `pg_temp.record('${table}', (${key})::text, ${typeof of === "string" ? of : object(of)})`;
}
export function when(condition: string, json: Json): Json {
  return `case when ${condition} then ${json} end`;
}
/** A JSON string with another text for each escape: an \`x\`, or \`half\` for a lone surrogate. */
export function withoutEscapes(json: Json, half: string): string {
  const plain = `regexp_replace(${json}, '\\\\\\\\', 'x', 'g')`;
  const whole = `regexp_replace(${plain}, '\\\\u[dD][89a-fA-F]..', '${half}', 'g')`;
  return `regexp_replace(${whole}, '\\\\(u....|.)', 'x', 'g')`;
}
/** The bytes of a text in UTF-8. A lone surrogate has three bytes. */
export function bytesOf(column: string): string {
  return `coalesce(case when ascii(${column}) = 1 then ${bytesOfString(`substr(${column}, 2)`)} else octet_length(${column}) end, 0)`;
}
export function bytesOfString(json: Json): string {
  return `coalesce(octet_length(${withoutEscapes(json, "xxx")}) - 2, 0)`;
}
/** The length of a text as JavaScript counts it. */
export function lengthOf(column: string): string {
  const long = (text: string) => `length(regexp_replace(${text}, '[\\U00010000-\\U0010FFFF]', 'xx', 'g'))`;
  const decoded = withoutEscapes(`substr(${column}, 2)`, "x");
  return `case when ascii(${column}) = 1 then ${long(decoded)} - 2 else ${long(column)} end`;
}

export function usage(input: string, output: string, more: Json): Json {
  return object({ input: `coalesce(${input}, 0)::text`, output: `coalesce(${output}, 0)::text`, more });
}
/** Cached tokens, reasoning tokens and the cost, from an array. */
export function moreOf(array: string): Json {
  const fields = { cached: whole(`${array}[1]`), reasoning: whole(`${array}[2]`), cost: whole(`${array}[3]`) };
  return when(`${array} is not null`, object(fields));
}

/** A JSON string. The functions below read a string or another value from the text of a flat JSON object. */
export const STRING = `"(?:[^"\\\\]|\\\\.)*"`;
export function stringIn(column: string, name: string): Json {
  return `substring(${column} from '"${name}":(${STRING})')`;
}
export function otherIn(column: string, name: string): Json {
  return `substring(${column} from '"${name}":(true|false|-?[0-9.eE+-]+)')`;
}
/** Functions: two that read a record or raise an error with its key, and one that raises a notice with a number of records, or an error if some are missing. */
export const FUNCTIONS = /* sql */ `
create function pg_temp.damaged(of_table text, of_key text, why text) returns void language plpgsql as $$
begin
  raise exception 'the record % of the table % is damaged: %. Restore a backup, or correct or delete this record', of_key, of_table, why;
end $$;
create function pg_temp.record(of_table text, of_key text, body text) returns json language plpgsql as $$
begin
  if body is null then
    perform pg_temp.damaged(of_table, of_key, 'a value is missing');
  end if;
  return body::json;
exception when data_exception then
  perform pg_temp.damaged(of_table, of_key, sqlerrm);
end $$;
create function pg_temp.bytes(of_key text, body text) returns bytea language plpgsql as $$
begin
  return decode(body, 'base64');
exception when data_exception then
  perform pg_temp.damaged('deliveries', of_key, sqlerrm);
end $$;
create function pg_temp.report(what text, made bigint, expected bigint) returns void language plpgsql as $$
begin
  if made <> expected then
    raise exception '% of % % were converted', made, expected, what;
  end if;
  raise notice 'Converted %: %.', what, made;
end $$;
create function pg_temp.counted(source text) returns bigint language plpgsql as $$
declare n bigint;
begin
  execute 'select count(*) from ' || source into n;
  return n;
end $$;
`;

export function report(what: string, made: string, expected: string): string {
  return `do $$ begin perform pg_temp.report('${what}', pg_temp.counted('${made.replaceAll("'", "''")}'), pg_temp.counted('${expected.replaceAll("'", "''")}')); end $$;\n`;
}
