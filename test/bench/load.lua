-- Sends one request again and again. Arguments: the raw request, the number of sessions, a seed, and the average pause of a connection
-- before each request in milliseconds; no pause without it. In the request `{session}` is a random session, in seven digits; `{passing}`
-- the same, but after every 10 requests the first session is replaced by another; `{address}` an address of the seed, another one after
-- every 20 requests; `{guess}` a number that no earlier request had.

local FREE = 20
local MESSAGES_EACH = 10

local parts, sessions, seed
local sent = 0

local fills = {
  session = function() return string.format("%07d", math.random(0, sessions - 1)) end,
  passing = function() return string.format("%07d", math.floor(sent / MESSAGES_EACH) + math.random(0, sessions - 1)) end,
  address = function()
    local n = math.floor((sent - 1) / FREE)
    return string.format("10.%d.%d.%d", (seed * 8 + math.floor(n / 65536)) % 256, math.floor(n / 256) % 256, n % 256)
  end,
  guess = function() return string.format("%03d%010d", seed, sent) end,
}

function init(args)
  parts, sessions, seed = {}, tonumber(args[2]), tonumber(args[3])
  math.randomseed(seed)
  local rest = tonumber(args[4])
  -- wrk checks if this function exists; even if it returns 0 it costs a timer.
  if rest then delay = function() return math.random(0, 2 * rest) end end
  local at = 1
  for from, name, to in args[1]:gmatch("(){(%a+)}()") do
    if fills[name] then
      parts[#parts + 1] = args[1]:sub(at, from - 1)
      parts[#parts + 1] = fills[name]
      at = to
    end
  end
  parts[#parts + 1] = args[1]:sub(at)
end

function request()
  sent = sent + 1
  if #parts == 1 then return parts[1] end
  if #parts == 3 then return parts[1] .. parts[2]() .. parts[3] end
  local made = {}
  for n = 1, #parts do made[n] = n % 2 == 1 and parts[n] or parts[n]() end
  return table.concat(made)
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"micros":%d,"refused":%d,"broken":%d,"p50":%d,"p99":%d,"p999":%d,"max":%d}\n',
    summary.requests, summary.duration, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max))
end
