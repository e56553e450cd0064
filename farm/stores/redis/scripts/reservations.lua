-- What is being created on a client: a count a kind, and until when each is to be believed in.
-- A kind is 'windows', 'flows' or 'tab:<window id>'; a coordinator that dies gives nothing back itself.

local function reserve(id, kind, identity, expires_at)
  add(key('opening', id), kind, 1)
  if identity then add(key('opening_identities', id), identity, 1) end
  redis.call('ZADD', key('reservations', id), expires_at,
    cjson.encode({kind, identity or false, changed(id)}))
end

local function uncount(id, kind, identity)
  add(key('opening', id), kind, -1)
  if identity then add(key('opening_identities', id), identity, -1) end
end

-- Gives one back; of several alike, the oldest.
local function give_back(id, kind, identity)
  for _, member in ipairs(redis.call('ZRANGE', key('reservations', id), 0, -1)) do
    local of = cjson.decode(member)
    if of[1] == kind and of[2] == (identity or false) then
      redis.call('ZREM', key('reservations', id), member)
      break
    end
  end
  uncount(id, kind, identity)
end
