-- Reserves a console flow and a slot (promise 5). Restates reservation.py `deny_flow`.
-- ARGV: client id, now, presence window, and what `reserve` wants. Taking wakes nobody.
local id = ARGV[2]
local client = read_client(id)
local denial = deny_slot(id, client, ARGV[3], ARGV[4])
if denial then return {denial} end
if client.type ~= 'console' then return {'not_ready'} end
local opening = tonumber(redis.call('HGET', key('opening', id), 'flows') or 0)
if redis.call('HLEN', key('contexts', id)) + opening >= client.max_flows then return {'full'} end
reserve(id, 'flows')
return {'ok', false, client.epoch}
