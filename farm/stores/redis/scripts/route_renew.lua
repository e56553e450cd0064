-- Renews a lease, puts back its routes that are missing, and clears away whose lease has ended; returns
-- the clients whose links that has closed, each with its link.
-- ARGV: coordinator, seconds, client id and link of each route.
stay(ARGV[2], ARGV[3])
local gone = {}
for _, id in ipairs(may_judge(ARGV[2], ARGV[3]) and redis.call('HKEYS', key('coordinators')) or {}) do
  if not is_there(id) then gone[id] = true end
end
local changes, closed = clear_away(gone)
for n = 4, #ARGV, 2 do
  if not route_of(ARGV[n]) then put_route(ARGV[n], ARGV[2], ARGV[n + 1]) end
end
return {'ok', changes and wake(), closed}
