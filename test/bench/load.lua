-- The load of P4: a chat message in a body of 200 bytes. Arguments: the token, how many sessions (0: each message opens its own), a seed.

local head, tail, sessions

local BODY = 200

function init(args)
  sessions = tonumber(args[2])
  math.randomseed(tonumber(args[3]))
  local open = '{"message":"'
  local close = sessions > 0 and '","session_id":"bench:' or '"}'
  local rest = sessions > 0 and 9 or 0 -- seven digits and `"}`
  local text = string.rep("What changed since yesterday? ", 10):sub(1, BODY - #open - #close - rest)
  head = "POST " .. wrk.path .. " HTTP/1.1\r\nHost: " .. wrk.host .. ":" .. wrk.port .. "\r\nAuthorization: Bearer " .. args[1]
    .. "\r\nContent-Type: application/json\r\nContent-Length: " .. BODY .. "\r\n\r\n" .. open .. text .. close
  tail = '"}'
end

function request()
  if sessions == 0 then return head end
  return head .. string.format("%07d", math.random(0, sessions - 1)) .. tail
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\n{"requests":%d,"micros":%d,"refused":%d,"broken":%d,"p50":%d,"p99":%d,"p999":%d,"max":%d}\n',
    summary.requests, summary.duration, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9), latency.max))
end
