-- Reads who is there and when each was last heard of, and in full who changed after a revision.
-- ARGV: revision, how many clients at most.
local found = redis.call('ZRANGEBYSCORE', key('clients'), '(' .. ARGV[2], '+inf',
  'WITHSCORES', 'LIMIT', 0, ARGV[3])
local changed = {}
for at = 1, #found, 2 do changed[#changed + 1] = whole_client(found[at]) end
return {'ok', tonumber(redis.call('GET', key('generation')) or 0),
        redis.call('HGETALL', key('seen')), found[#found] or ARGV[2], changed}
