-- Replaces the exclusions of a coordinator, and wakes who waits, whether they have changed or not.
-- ARGV: coordinator, now, until when they count, then client ids, each with its kind after it.
local coordinator, now = ARGV[2], tonumber(ARGV[3])
local known = redis.call('HGETALL', key('excluding'))
for at = 1, #known, 2 do
  if tonumber(known[at + 1]) <= now then
    redis.call('HDEL', key('excluding'), known[at])
    redis.call('DEL', key('excluded', known[at]))
  end
end
redis.call('DEL', key('excluded', coordinator))
put_all('HSET', key('excluded', coordinator), 5, #ARGV)
redis.call('HSET', key('excluding'), coordinator, ARGV[4])
return {'ok', wake()}
