-- Reads what is new after a revision: in full who changed, when the others were heard of, who is
-- gone; up to which revision that is, how many clients there are, and who is excluded now; and
-- when the last of which kind was seen, of those that have left.
-- ARGV: revision, how many changed clients at most, now.
local after, most = '(' .. ARGV[2], tonumber(ARGV[3])
local found = redis.call('ZRANGEBYSCORE', key('clients'), after, '+inf', 'WITHSCORES', 'LIMIT', 0, most)
local changed = {}
for at = 1, #found, 2 do changed[#changed + 1] = whole_client(found[at]) end
local until_ = #changed == most and found[#found] or redis.call('GET', key('revision')) or ARGV[2]

local heard = redis.call('ZRANGEBYSCORE', key('heard'), after, until_)
local seen = {}
for _, id in ipairs(heard) do seen[#seen + 1] = {id, redis.call('HGET', key('seen'), id)} end
local departed = {}
for _, kind in ipairs(redis.call('ZRANGEBYSCORE', key('departed'), after, until_)) do
  departed[#departed + 1] = {kind, redis.call('HGET', key('departures'), kind)}
end
return {'ok', tonumber(redis.call('GET', key('generation')) or 0), until_, changed, seen,
        redis.call('ZRANGEBYSCORE', key('gone'), after, until_), redis.call('ZCARD', key('clients')),
        exclusions(ARGV[4]), departed}
