-- What is being created on a client: a count a kind, and each reservation that is open by its id, so
-- that it is given back once. A kind is 'windows', 'flows', 'slots' or 'tab:<window id>'.
-- `reserved:` *coordinator* has on which client each of its own is.

-- For a script whose ARGV has, from 5: expiry, id of the reservation, whose it is ('' is nobody's) and
-- the seconds of a lease. Who reserves is there.
local function reserve(id, kind, identity)
  local expires_at, reservation, coordinator, lease_s = unpack(ARGV, 5, 8)
  add(key('opening', id), kind, 1)
  if identity then add(key('opening_identities', id), identity, 1) end
  redis.call('HSET', key('reservations', id), reservation, cjson.encode({
    kind = kind, identity = identity, expires_at = expires_at, coordinator = coordinator}))
  if coordinator ~= '' then
    stay(coordinator, lease_s)
    redis.call('HSET', key('reserved', coordinator), reservation, id)
  end
  changed(id)
end

local function open_reservation(id, reservation)
  local text = redis.call('HGET', key('reservations', id), reservation)
  return text and cjson.decode(text)
end

-- Ends `one`, which is open.
local function give_back(id, reservation, one)
  end_reservation(id, reservation, one)
  add(key('opening', id), one.kind, -1)
  if one.identity then add(key('opening_identities', id), one.identity, -1) end
end

-- Of a coordinator that is there no more; returns whether there was anything.
local function give_back_all_of(coordinator)
  local flat = redis.call('HGETALL', key('reserved', coordinator))
  for at = 1, #flat, 2 do
    local reservation, id = flat[at], flat[at + 1]
    local one = open_reservation(id, reservation)
    if one then
      give_back(id, reservation, one)
      changed(id)
    end
  end
  redis.call('DEL', key('reserved', coordinator))
  return #flat > 0
end
