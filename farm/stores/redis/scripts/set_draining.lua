-- Lets an agent take nothing new, or again what there is; one that is fenced takes nothing.
-- ARGV: client id, 1 or 0, why.
local id = ARGV[2]
if redis.call('EXISTS', key('client', id)) == 0 then return {'no'} end
local fenced = redis.call('HEXISTS', key('client', id), 'drain') == 1
redis.call('HSET', key('client', id), 'draining', fenced and 1 or ARGV[3],
  'draining_because', ARGV[4])
changed(id)
return {'ok', wake()}
