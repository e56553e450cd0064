-- Begins with a command, unless its id has been used, and lets go of what is not retained.
-- ARGV: namespace, command id, record, admitted at, how many to keep, the moment up to which none
-- is kept, how many ids to keep.
local namespace, id, at = ARGV[2], ARGV[3], ARGV[5]
local records, payloads = key('commands', namespace), key('command_payloads', namespace)
local order, expired = key('command_order', namespace), key('command_expired', namespace)

redis.call('SET', key('commands_since'), at, 'NX')
if redis.call('HEXISTS', records, id) == 1 or redis.call('ZSCORE', expired, id) then
  return {'no'}
end
redis.call('HSET', records, id, ARGV[4])
redis.call('ZADD', order, at, id)

local function let_go(found)
  for n = 1, #found, 2 do
    redis.call('HDEL', records, found[n])
    redis.call('HDEL', payloads, found[n])
    redis.call('ZREM', order, found[n])
    redis.call('ZADD', expired, found[n + 1], found[n])
  end
end
-- A hundred at once, so that others are not kept waiting; the next admission goes on.
let_go(redis.call('ZRANGEBYSCORE', order, '-inf', ARGV[7], 'WITHSCORES', 'LIMIT', 0, 100))
local over = math.min(redis.call('ZCARD', order) - ARGV[6], 100)
if over > 0 then let_go(redis.call('ZRANGE', order, 0, over - 1, 'WITHSCORES')) end

over = redis.call('ZCARD', expired) - ARGV[8]
if over > 0 then
  local last = redis.call('ZRANGE', expired, over - 1, over - 1, 'WITHSCORES')
  redis.call('ZREMRANGEBYRANK', expired, 0, over - 1)
  redis.call('HSET', key('commands_forgotten'), namespace, last[2])
end
return {'ok'}
