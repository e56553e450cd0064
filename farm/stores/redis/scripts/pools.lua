-- Who is in which pool (namespace, task queue and activity type, '' for any), who of them takes work
-- and has a slot, both in order of id, and a cursor a pool: whose turn it last was. A cursor is there
-- no longer than somebody is in its pool.

local function pool_of(namespace, task_queue, activity)
  return table.concat({string.len(namespace), namespace, string.len(task_queue), task_queue,
                       activity and '=' .. activity or ''}, ':')
end

local function requested_pool(request)
  return pool_of(request.namespace, request.task_queue, request.activity_type)
end

local function part_from(pool, id)
  redis.call('SREM', key('pools', id), pool)
  redis.call('ZREM', key('free', pool), id)
  redis.call('ZREM', key('pool', pool), id)
  if redis.call('EXISTS', key('pool', pool)) == 0 then redis.call('HDEL', key('cursors'), pool) end
end

local function join_pools(id, client)
  local before = {}
  for _, pool in ipairs(redis.call('SMEMBERS', key('pools', id))) do before[pool] = true end
  local takes = redis.call('SISMEMBER', key('takers'), id) == 1
  local function join(pool)
    if not before[pool] then
      if takes then redis.call('ZADD', key('free', pool), 0, id) end
      redis.call('SADD', key('pools', id), pool)
      redis.call('ZADD', key('pool', pool), 0, id)
    end
    before[pool] = nil
  end
  for _, namespace in ipairs(client.namespaces) do
    join(pool_of(namespace, client.task_queue))
    for _, activity in ipairs(cjson.decode(client.activity_types)) do
      join(pool_of(namespace, client.task_queue, activity))
    end
  end
  for pool in pairs(before) do part_from(pool, id) end
end

local function leave_pools(id)
  for _, pool in ipairs(redis.call('SMEMBERS', key('pools', id))) do part_from(pool, id) end
end

-- Notes that a client takes work and has a slot, or not.
local function open_pools(id)
  if redis.call('SADD', key('takers'), id) == 0 then return end
  for _, pool in ipairs(redis.call('SMEMBERS', key('pools', id))) do
    redis.call('ZADD', key('free', pool), 0, id)
  end
end

local function close_pools(id)
  if redis.call('SREM', key('takers'), id) == 0 then return end
  for _, pool in ipairs(redis.call('SMEMBERS', key('pools', id))) do
    redis.call('ZREM', key('free', pool), id)
  end
end

-- Calls `visit` with each client of a pool's set, from whose turn it is on, until it returns something.
local function in_turn(set, pool, visit)
  local FEW = 32
  local last = redis.call('HGET', key('cursors'), pool)
  local function walk(from, to)
    while true do
      local found = redis.call('ZRANGEBYLEX', key(set, pool), from, to, 'LIMIT', 0, FEW)
      for _, id in ipairs(found) do
        local outcome = visit(id)
        if outcome then return outcome end
      end
      if #found < FEW then return end
      from = '(' .. found[#found]
    end
  end
  if not last then return walk('-', '+') end
  return walk('(' .. last, '+') or walk('-', '[' .. last)
end

local function had(pool, id) redis.call('HSET', key('cursors'), pool, id) end
