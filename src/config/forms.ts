/** The patterns of the schema as people say them, after "must be". A test keeps this list whole. */
const FORMS: Readonly<Record<string, string>> = {
  "^([1-9][0-9]{0,8}(ms|s|m|h)|[1-9][0-9]{0,4}d)$":
    "a span of time, a number with `ms`, `s`, `m`, `h` or `d`, for example `30m` or `7d`",
  "^(off|[1-9][0-9]{0,8}(ms|s|m|h)|[1-9][0-9]{0,4}d)$":
    "a span of time, a number with `ms`, `s`, `m`, `h` or `d`, for example `30m`, or `off`",
  "^[1-9][0-9]{0,8}(ms|s|m|h)$": "a span of time, a number with `ms`, `s`, `m` or `h`, for example `30s`",
  "^[1-9][0-9]{0,11} ?(B|KiB|MiB|GiB)$":
    "a size, a number of bytes or a number with `B`, `KiB`, `MiB` or `GiB`, for example `1GiB`",
  "^[1-9][0-9]{0,8} ?(B|KiB|MiB)$": "a size, a number with `B`, `KiB` or `MiB`, for example `256KiB`",
  "^https?://[^ ]+$": "an address that begins with `https://` or `http://`, for example `https://example.com/path`",
  "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$": 'a day as year-month-day, for example `"2026-03-01"`',
  "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])(T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\\.[0-9]{1,3})?Z)?$":
    'a day as year-month-day or a moment in UTC, for example `"2027-01-31"` or `"2027-01-31T12:00:00Z"`',
  "^(/[A-Za-z0-9._~-]+)+$":
    "a path of letters, digits, `.`, `_`, `~` and `-` that begins with `/` and does not end with one, for example `/hooks`",
  "^[A-Za-z][A-Za-z0-9._-]{0,63}/(\\*|[A-Za-z0-9._-]{1,128})$":
    "the tool of a server as `server/tool`, or `server/*` for all of its tools",
  "^webhook:(?:[ -~]{0,247}[!-~])$": "the name of a session that begins with `webhook:`, for example `webhook:github`",
  "^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$": "the name of a header, for example `authorization`",
  "^[^\\r\\n\\u0000]*$": "text in one line",
  "^[A-Za-z_][A-Za-z0-9_]*$": "the name of a variable: letters, digits and `_`, not a digit first",
  "^[A-Za-z][A-Za-z0-9._-]{0,63}$":
    "a name that begins with a letter, then letters, digits, `.`, `_` and `-`, at most 64 characters",
  "^(?!(wake|agent)$)[a-z][a-z0-9-]{0,63}$":
    "a name that begins with a small letter, then small letters, digits and `-`, at most 64 characters, but not `wake` or `agent`, which are taken",
  "^(headers|body)\\..*[^.]$":
    "a place in the request, `headers.<name>` or `body.<dotted path>`, for example `headers.x-github-event` or `body.action`",
};

/** Describes a text of each pattern, in words that follow "must be". */
export const formOfPattern = (pattern: string): string | undefined => FORMS[pattern];
