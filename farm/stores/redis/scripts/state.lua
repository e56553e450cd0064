-- One client's state as several scripts read and change it. Restates farm/core/model.py
-- `used_slots`, and eligibility.py `_is_present`.

local PARTS = {'client', 'metadata', 'windows', 'identities', 'contexts', 'tabs', 'places', 'idle',
               'dirty', 'assignments', 'opening', 'opening_identities', 'reservations'}

local function read_client(id)
  local found = redis.call('HMGET', key('client', id), 'epoch', 'epoch_name', 'type', 'instance',
    'link', 'draining', 'namespaces', 'max_concurrency', 'max_windows', 'max_tabs_per_window',
    'max_flows', 'task_queue', 'activity_types', 'node')
  if not found[1] then return nil end
  return {epoch = found[1], epoch_name = found[2], type = found[3], instance = found[4],
          link = found[5], draining = found[6] == '1', namespaces = cjson.decode(found[7]),
          max_concurrency = tonumber(found[8]), max_windows = tonumber(found[9]),
          max_tabs_per_window = tonumber(found[10]), max_flows = tonumber(found[11]),
          task_queue = found[12] or 'default', activity_types = found[13] or '["job"]',
          node = found[14],
          seen_at = redis.call('HGET', key('seen'), id)}
end

-- All of a client, in the order in which records.py reads it.
local function whole_client(id)
  return {id, redis.call('HGETALL', key('client', id)), redis.call('HGETALL', key('metadata', id)),
          redis.call('HVALS', key('windows', id)), redis.call('HVALS', key('contexts', id)),
          redis.call('SMEMBERS', key('dirty', id)), redis.call('HVALS', key('assignments', id)),
          redis.call('HGETALL', key('opening', id)),
          redis.call('HGETALL', key('opening_identities', id)), redis.call('HGET', key('seen'), id)}
end

-- What work is routed to a client by, as departures.py writes it; nothing if it is not known.
local function kind_of(id)
  local found = redis.call('HMGET', key('client', id), 'type', 'serving')
  return found[2] and found[1] .. ':' .. found[2]
end

-- Remembers when the last agent of a kind was seen; of too many kinds those that left last.
local function depart(kind, seen_at)
  if not kind then return end
  local before = redis.call('HGET', key('departures'), kind)
  if not before or tonumber(before) < tonumber(seen_at) then
    redis.call('HSET', key('departures'), kind, seen_at)
  end
  touch(kind, 'departed')
  while redis.call('HLEN', key('departures')) > 1000 do
    redis.call('HDEL', key('departures'), redis.call('ZPOPMIN', key('departed'))[1])
  end
end

local function used_slots(id)
  local used = redis.call('HLEN', key('assignments', id))
  for _, count in ipairs(redis.call('HVALS', key('opening', id))) do used = used + count end
  return used
end

local function is_present(client, now, window_s)
  return client.link and now - client.seen_at <= tonumber(window_s)
end

-- Writes any number of arguments: `unpack` can't take them all at once.
local function put_all(command, name, from, to)
  for first = from, to, 1000 do
    redis.call(command, name, unpack(ARGV, first, math.min(first + 999, to)))
  end
end

-- Adds to a count, which is never below nothing.
local function add(name, field, by)
  local count = tonumber(redis.call('HGET', name, field) or 0) + by
  if count > 0 then redis.call('HSET', name, field, count) else redis.call('HDEL', name, field) end
end

-- Tokens are `store epoch:counter`; only ever greater ones are kept.
local function is_later(token, than)
  local epoch, counter = string.match(token, '(%d+):(%d+)')
  local than_epoch, than_counter = string.match(than, '(%d+):(%d+)')
  if epoch ~= than_epoch then return tonumber(epoch) > tonumber(than_epoch) end
  return tonumber(counter) > tonumber(than_counter)
end

local function last_token(id)
  return redis.call('HGET', key('tokens'), id) or ARGV[1] .. ':0'
end

local function raise_token(id, seen)
  if is_later(seen, last_token(id)) then redis.call('HSET', key('tokens'), id, seen) end
end

local function next_token(id)
  local epoch, counter = string.match(last_token(id), '(%d+):(%d+)')
  local token = epoch .. ':' .. whole(later(counter))
  redis.call('HSET', key('tokens'), id, token)
  return token
end

local function put_assignment(one)
  redis.call('HSET', key('assignments', one.client_id), one.context_id, cjson.encode(one))
  redis.call('ZADD', key('expiries'), one.expires_at, cjson.encode({one.client_id, one.context_id}))
end

local function end_assignment(id, context_id)
  redis.call('HDEL', key('assignments', id), context_id)
  redis.call('ZREM', key('expiries'), cjson.encode({id, context_id}))
end

local function end_reservation(id, reservation, one)
  redis.call('HDEL', key('reservations', id), reservation)
  redis.call('HDEL', key('reserved', one.coordinator), reservation)
end

-- Its context is dirty until it is reported clean (promise 9).
local function release(id, context_id)
  end_assignment(id, context_id)
  redis.call('SADD', key('dirty', id), context_id)
end

-- The assignment of this context, as text and decoded, if it is under this token (promise 8).
local function held(id, context_id, token)
  local text = redis.call('HGET', key('assignments', id), context_id)
  local one = text and cjson.decode(text)
  if one and one.token == token then return text, one end
end
