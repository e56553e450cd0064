-- Gives an agent nothing new on its present link, whatever it says of itself.
-- ARGV: client id, who asks for it and since when; who asked first is kept.
local id = ARGV[2]
if redis.call('EXISTS', key('client', id)) == 0 then return {'no'} end
redis.call('HSETNX', key('client', id), 'drain', ARGV[3])
redis.call('HSET', key('client', id), 'draining', 1)
changed(id)
return {'ok', wake()}
