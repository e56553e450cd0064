-- Notes how many slots an agent has now. ARGV: client id, link, that number.
local id = ARGV[2]
if redis.call('HGET', key('client', id), 'link') ~= ARGV[3] then return {'no'} end
redis.call('HSET', key('client', id), 'max_concurrency', ARGV[4])
changed(id)
return {'ok', wake()}
