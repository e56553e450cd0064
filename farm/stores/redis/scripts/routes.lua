-- Whose link is where.

local function put_route(client_id, coordinator, link)
  redis.call('HSET', key('routes'), client_id, cjson.encode({coordinator, link}))
end

local function route_of(client_id)
  local text = redis.call('HGET', key('routes'), client_id)
  if text then return unpack(cjson.decode(text)) end
end

-- Takes away what coordinators have left behind: what they had reserved is given back, and their
-- links are closed. Returns whether there was anything, and client ids, each with its closed link.
local function clear_away(coordinators)
  local given_back, closed = false, {}
  if not next(coordinators) then return given_back, closed end
  for id in pairs(coordinators) do
    redis.call('HDEL', key('coordinators'), id)
    redis.call('HDEL', key('arrivals'), id)
    redis.call('DEL', key('mail', id), key('parcels', id))
    given_back = give_back_all_of(id) or given_back
  end
  for _, client_id in ipairs(redis.call('HKEYS', key('routes'))) do
    local coordinator, link = route_of(client_id)
    if coordinators[coordinator] then
      redis.call('HDEL', key('routes'), client_id)
      if unlink(client_id, link) then
        closed[#closed + 1] = client_id
        closed[#closed + 1] = link
      end
    end
  end
  return given_back or #closed > 0, closed
end
