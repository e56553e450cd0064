-- Notes that an agent was heard of on its link; that it is back again is a change.
-- ARGV: client id, link, now, presence window.
local id = ARGV[2]
if redis.call('HGET', key('client', id), 'link') ~= ARGV[3] then return {'no'} end
local before = redis.call('HGET', key('seen'), id)
redis.call('HSET', key('seen'), id, ARGV[4])
touch(id, 'heard')
if ARGV[4] - before <= tonumber(ARGV[5]) then return {'ok'} end
show(id, read_client(id))
return {'ok', wake()}
