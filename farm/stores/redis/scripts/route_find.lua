-- Says which coordinator that is there holds an agent's link. ARGV: client id.
local coordinator, link = route_of(ARGV[2])
if not coordinator or not is_there(coordinator) then return {'no'} end
return {'ok', false, coordinator, link}
