-- Ends the probation of an agent on its current link. ARGV: client id, link.
local id = ARGV[2]
if redis.call('HGET', key('unproven'), id) ~= ARGV[3] then return {'no'} end
redis.call('HDEL', key('unproven'), id)
return {'ok', wake()}
