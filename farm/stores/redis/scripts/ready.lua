-- Where `assign_first` looks, so that a success never reads all there is: the clients that are
-- linked, take work, have a slot free and (but for some it will find out) an idle context, by load.
-- Names have '\0' between their parts, of which no place, no type and no canonical value has one.

local function ready(type, namespace, task_queue, place)
  return key('ready', table.concat({type, namespace, task_queue, place}, '\0'))
end

local function idle(place, context_id) return place .. '\0' .. context_id end

-- Begin and end of the range of all idle contexts of a place.
local function idle_in(place) return '[' .. place .. '\0', '(' .. place .. '\1' end

local function hide(id)
  close_pools(id)
  for _, name in ipairs(redis.call('SMEMBERS', key('shown', id))) do
    redis.call('ZREM', name, id)
  end
  redis.call('DEL', key('shown', id))
end

-- The sets that a client with a slot free belongs in.
local function kinds(id, client)
  local found = {}
  for _, place in ipairs(redis.call('SMEMBERS', key('places', id))) do
    local any = redis.call('ZLEXCOUNT', key('idle', id), idle_in(place)) > 0
    for _, namespace in ipairs(any and client.namespaces or {}) do
      found[#found + 1] = ready('', namespace, client.task_queue, place)
      found[#found + 1] = ready(client.type, namespace, client.task_queue, place)
    end
  end
  return found
end

local function show(id, client)
  if not client or not client.link or client.draining or not client.max_concurrency then
    return hide(id)
  end
  local used = used_slots(id)
  if used >= client.max_concurrency then return hide(id) end
  open_pools(id)
  local before = {}
  for _, name in ipairs(redis.call('SMEMBERS', key('shown', id))) do before[name] = true end
  for _, name in ipairs(kinds(id, client)) do
    redis.call('ZADD', name, used / client.max_concurrency, id)
    if not before[name] then redis.call('SADD', key('shown', id), name) end
    before[name] = nil
  end
  for name in pairs(before) do
    redis.call('ZREM', name, id)
    redis.call('SREM', key('shown', id), name)
  end
end

-- Notes that a client, shown or not, has this many slots taken.
local function load(id, client, used)
  if used >= client.max_concurrency then return hide(id) end
  for _, name in ipairs(redis.call('SMEMBERS', key('shown', id))) do
    redis.call('ZADD', name, used / client.max_concurrency, id)
  end
end

-- Notes a change of a client, after it was written.
local function changed(id)
  show(id, read_client(id))
  return touch(id)
end

-- Notes that a link closed; false if it is not the client's current one.
local function unlink(id, link)
  if redis.call('HGET', key('client', id), 'link') ~= link then return false end
  redis.call('HDEL', key('client', id), 'link')
  redis.call('HDEL', key('unproven'), id)
  changed(id)
  return true
end

-- Who has a value of metadata: adds ('SADD') or takes away ('SREM') one who does.
local function list_metadata(id, command)
  local flat = redis.call('HGETALL', key('metadata', id))
  for at = 1, #flat, 2 do
    redis.call(command, key('with', flat[at] .. '\0' .. flat[at + 1]), id)
  end
end

-- Where at most so many meet a requirement, these.
local function few_who_meet(request, most)
  local fewest, holders = most + 1, nil
  for field, value in pairs(request.requirements) do
    local set = key('with', field .. '\0' .. value)
    local count = redis.call('SCARD', set)
    if count < fewest then fewest, holders = count, set end
  end
  return holders and redis.call('SMEMBERS', holders)
end

local function forget(id, parts)
  hide(id)
  list_metadata(id, 'SREM')
  for _, text in ipairs(redis.call('HVALS', key('assignments', id))) do
    end_assignment(id, cjson.decode(text).context_id)
  end
  local open = redis.call('HGETALL', key('reservations', id))
  for at = 1, #open, 2 do end_reservation(id, open[at], cjson.decode(open[at + 1])) end
  for _, part in ipairs(parts) do redis.call('DEL', key(part, id)) end
end
