-- Forgets where a link was, unless it has been claimed since. ARGV: coordinator, client id, link.
local coordinator, link = route_of(ARGV[3])
if coordinator ~= ARGV[2] or link ~= ARGV[4] then return {'no'} end
redis.call('HDEL', key('routes'), ARGV[3])
return {'ok'}
