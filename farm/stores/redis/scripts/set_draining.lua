-- Lets an agent take nothing new.
-- ARGV: client id.
local id = ARGV[2]
if redis.call('EXISTS', key('client', id)) == 0 then return {'no'} end
redis.call('HSET', key('client', id), 'draining', '1')
changed(id)
return {'ok', wake()}
