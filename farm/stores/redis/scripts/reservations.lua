-- What is being created on a client: a count a kind, and each reservation that is open by its id, so
-- that it is given back once. A kind is 'windows', 'flows', 'slots' or
-- 'tab:<window id>'.

local function reserve(id, reservation, kind, identity, expires_at)
  add(key('opening', id), kind, 1)
  if identity then add(key('opening_identities', id), identity, 1) end
  redis.call('HSET', key('reservations', id), reservation,
    cjson.encode({kind = kind, identity = identity, expires_at = expires_at}))
  changed(id)
end

local function open_reservation(id, reservation)
  local text = redis.call('HGET', key('reservations', id), reservation)
  return text and cjson.decode(text)
end

-- Ends `one`, which is open.
local function give_back(id, reservation, one)
  redis.call('HDEL', key('reservations', id), reservation)
  add(key('opening', id), one.kind, -1)
  if one.identity then add(key('opening_identities', id), one.identity, -1) end
end
