-- Reserves a tab in a window, and a slot (promise 5). Restates reservation.py `deny_tab`.
-- ARGV: client id, now, presence window, expiry, window id. Taking wakes nobody.
local id, kind = ARGV[2], 'tab:' .. ARGV[6]
local client = read_client(id)
local denial = deny_slot(id, client, ARGV[3], ARGV[4])
if denial then return {denial} end
local window = redis.call('HGET', key('windows', id), ARGV[6])
if not window then return {'gone'} end
local tabs = cjson.decode(window).tabs + (redis.call('HGET', key('opening', id), kind) or 0)
if tabs >= client.max_tabs_per_window then return {'full'} end
reserve(id, kind, nil, ARGV[5])
return {'ok', false, client.epoch}
