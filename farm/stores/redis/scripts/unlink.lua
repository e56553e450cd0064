-- Notes that an agent's current link closed.
-- ARGV: client id, link.
local id = ARGV[2]
if redis.call('HGET', key('client', id), 'link') ~= ARGV[3] then return {'no'} end
redis.call('HDEL', key('client', id), 'link')
changed(id)
return {'ok', wake()}
