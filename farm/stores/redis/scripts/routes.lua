-- Coordinators, each there until its lease ends by this Redis's clock, and whose link is where.

local function now_s()
  local time = redis.call('TIME')
  return tonumber(time[1]) + tonumber(time[2]) / 1000000
end

local function is_there(coordinator)
  local till = redis.call('HGET', key('coordinators'), coordinator)
  return till and tonumber(till) > now_s()
end

local function stay(coordinator, lease_s)
  redis.call('HSET', key('coordinators'), coordinator, string.format('%.6f', now_s() + lease_s))
end

local function put_route(client_id, coordinator, link)
  redis.call('HSET', key('routes'), client_id, cjson.encode({coordinator, link}))
end

local function route_of(client_id)
  local text = redis.call('HGET', key('routes'), client_id)
  if text then return unpack(cjson.decode(text)) end
end

-- Takes away what coordinators have left behind.
local function clear_away(coordinators)
  for id in pairs(coordinators) do
    redis.call('HDEL', key('coordinators'), id)
    redis.call('DEL', key('mail', id), key('parcels', id))
  end
  for _, client_id in ipairs(redis.call('HKEYS', key('routes'))) do
    if coordinators[route_of(client_id)] then redis.call('HDEL', key('routes'), client_id) end
  end
end
