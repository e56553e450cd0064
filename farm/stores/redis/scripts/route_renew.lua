-- Renews a lease, puts back its routes that are missing, and clears away whose lease has ended.
-- ARGV: coordinator, seconds, client id and link of each route.
stay(ARGV[2], ARGV[3])
local gone = {}
for _, id in ipairs(redis.call('HKEYS', key('coordinators'))) do
  if not is_there(id) then gone[id] = true end
end
if next(gone) then clear_away(gone) end
for n = 4, #ARGV, 2 do
  if not route_of(ARGV[n]) then put_route(ARGV[n], ARGV[2], ARGV[n + 1]) end
end
return {'ok'}
