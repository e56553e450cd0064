-- Forgets an epoch of a client, but neither its last token nor its last epoch number.
-- ARGV: client id, epoch, when it was last heard of if it must not have been since.
local id = ARGV[2]
if redis.call('HGET', key('client', id), 'epoch') ~= ARGV[3] then return {'no'} end
if ARGV[4] and tonumber(redis.call('HGET', key('seen'), id)) ~= tonumber(ARGV[4]) then return {'no'} end
local ended = redis.call('HVALS', key('assignments', id))
depart(kind_of(id), redis.call('HGET', key('seen'), id))
forget(id, PARTS)
leave_pools(id)
redis.call('HDEL', key('seen'), id)
redis.call('HDEL', key('links'), id)
redis.call('HDEL', key('unproven'), id)
redis.call('ZREM', key('clients'), id)
redis.call('ZREM', key('heard'), id)
touch(id, 'gone')
return {'ok', wake(), ended}
