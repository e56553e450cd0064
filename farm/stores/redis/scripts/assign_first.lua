-- Finds an idle context that fits and takes it with one slot (promise 4): the affinity client's,
-- else one of the emptiest client, or the fullest. Of all there is it looks at a bounded part, and
-- says 'no' where none was in that.
-- ARGV: request, now, presence window, expiry, 'spread' or 'pack', affinity client if there is one.
-- Taking wakes nobody.
local CLIENTS, CONTEXTS = 32, 64
local request, now, window_s = cjson.decode(ARGV[2]), ARGV[3], ARGV[4]
local name = ready(request.client_type or '', request.namespace, request.place)

local function find_on(id)
  local client = read_client(id)
  if not client then return end
  -- Who is silent comes back by a heartbeat.
  if not is_present(client, now, window_s) then return hide(id) end
  if deny_client(id, client, request, now, window_s, 0) then return end
  local from, to = idle_in(request.place)
  for _, member in ipairs(redis.call('ZRANGEBYLEX', key('idle', id), from, to, 'LIMIT', 0, CONTEXTS)) do
    local context_id = string.sub(member, string.len(request.place) + 2)
    local context = cjson.decode(redis.call('HGET', key('contexts', id), context_id))
    if not deny_context(id, context_id, context, request, 0) then return client, context_id end
  end
end

-- Where few meet a requirement, these.
local function few_who_meet()
  local fewest, holders = CLIENTS + 1, nil
  for field, value in pairs(request.requirements) do
    local set = key('with', field .. '\0' .. value)
    local count = redis.call('SCARD', set)
    if count < fewest then fewest, holders = count, set end
  end
  return holders and redis.call('SMEMBERS', holders)
end

local function in_order()
  local few = few_who_meet()
  if not few then
    return redis.call(ARGV[6] == 'pack' and 'ZREVRANGE' or 'ZRANGE', name, 0, CLIENTS - 1)
  end
  local loads, ids = {}, {}
  for _, id in ipairs(few) do
    loads[id] = tonumber(redis.call('ZSCORE', name, id) or nil)
    if loads[id] then ids[#ids + 1] = id end
  end
  table.sort(ids, function(one, other)
    if ARGV[6] == 'pack' then return loads[one] > loads[other] end
    return loads[one] < loads[other]
  end)
  return ids
end

local function take_on(id)
  local client, context_id = find_on(id)
  if not client then return end
  return {'ok', false, id, context_id, hold(id, client, context_id, request, now, ARGV[5])}
end

local taken = ARGV[7] and take_on(ARGV[7])
if taken then return taken end
for _, id in ipairs(in_order()) do
  taken = take_on(id)
  if taken then return taken end
end
return {'no'}
