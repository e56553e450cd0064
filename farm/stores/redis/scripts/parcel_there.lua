-- Says which coordinators are there. ARGV: nothing more.
local there = {'ok', false}
for _, id in ipairs(redis.call('HKEYS', key('coordinators'))) do
  if is_there(id) then there[#there + 1] = id end
end
return there
