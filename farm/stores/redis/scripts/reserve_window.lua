-- Reserves a window, its first tab and a slot (promise 5). Restates reservation.py `deny_window`,
-- and that an identity has one window among all agents of the shard.
-- ARGV: client id, now, presence window, what `reserve` wants, a request's own limit of windows or
-- '', identity if it has one. Taking wakes nobody.
local id, identity = ARGV[2], ARGV[10]
local client = read_client(id)
local denial = deny_slot(id, client, ARGV[3], ARGV[4])
if denial then return {denial} end
local opening = tonumber(redis.call('HGET', key('opening', id), 'windows') or 0)
local there = 0 -- restates model.py `worker_windows`
for _, text in ipairs(redis.call('HVALS', key('windows', id))) do
  if cjson.decode(text).owner == 'worker' then there = there + 1 end
end
if there + opening >= within(client.max_windows, ARGV[9]) then
  return {'full'}
end
for _, other in ipairs(identity and redis.call('ZRANGE', key('clients'), 0, -1) or {}) do
  if redis.call('SISMEMBER', key('identities', other), identity) == 1
    or redis.call('HEXISTS', key('opening_identities', other), identity) == 1 then
    return {'taken'}
  end
end
reserve(id, 'windows', identity)
return {'ok', false, client.epoch}
