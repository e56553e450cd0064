-- Ends assignments whose time is over; their contexts are dirty until reported (promise 9).
-- ARGV: now, how many at most.
local over = redis.call('ZRANGEBYSCORE', key('expiries'), '-inf', ARGV[2], 'LIMIT', 0, ARGV[3])
local ended = {}
for _, member in ipairs(over) do
  local id, context_id = unpack(cjson.decode(member))
  ended[#ended + 1] = redis.call('HGET', key('assignments', id), context_id)
  release(id, context_id)
  changed(id)
end
if #ended == 0 then return {'ok', false, ended} end
return {'ok', wake(), ended}
