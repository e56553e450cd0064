-- Who is not to be chosen for now. `excluding` has until when the set of each coordinator counts, and
-- `excluded:` *coordinator* is that set, kinds by client. `unproven` has the clients in probation, each
-- with its link. Restates reachability.py `union`.

local sets

-- The sets that count; to be asked for one moment in a script.
local function counting(now)
  if sets then return sets end
  sets = {}
  local found = redis.call('HGETALL', key('excluding'))
  for at = 1, #found, 2 do
    if tonumber(found[at + 1]) > tonumber(now) then sets[#sets + 1] = key('excluded', found[at]) end
  end
  return sets
end

local function excluded(id, now)
  if redis.call('HEXISTS', key('unproven'), id) == 1 then return true end
  for _, set in ipairs(counting(now)) do
    if redis.call('HEXISTS', set, id) == 1 then return true end
  end
  return false
end

-- Of everybody: client ids, each with its kind after it.
local function exclusions(now)
  local kinds, flat = {}, {}
  for _, id in ipairs(redis.call('HKEYS', key('unproven'))) do kinds[id] = 'opening_probation' end
  for _, set in ipairs(counting(now)) do
    local found = redis.call('HGETALL', set)
    for at = 1, #found, 2 do
      if kinds[found[at]] ~= 'reachability_lost' then kinds[found[at]] = found[at + 1] end
    end
  end
  for id, kind in pairs(kinds) do
    flat[#flat + 1] = id
    flat[#flat + 1] = kind
  end
  return flat
end
