-- Gives back what was reserved too long ago to be still in creation (promise 5).
-- ARGV: now.
local given_back = 0
for _, id in ipairs(redis.call('ZRANGE', key('clients'), 0, -1)) do
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', key('reservations', id), '-inf', ARGV[2])) do
    local kind, identity = unpack(cjson.decode(member))
    redis.call('ZREM', key('reservations', id), member)
    uncount(id, kind, identity)
    changed(id)
    given_back = given_back + 1
  end
end
return {'ok', given_back > 0 and wake()}
