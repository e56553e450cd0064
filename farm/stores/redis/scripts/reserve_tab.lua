-- Reserves a tab in a window, and a slot (promise 5). Restates reservation.py `deny_tab`.
-- ARGV: client id, now, presence window, what `reserve` wants, window id; for a request also its own
-- limit of tabs or '', and itself. Taking wakes nobody.
local id, window_id = ARGV[2], ARGV[9]
local kind = 'tab:' .. window_id
local client = read_client(id)
local denial = deny_slot(id, client, ARGV[3], ARGV[4])
if denial then return {denial} end
local window = redis.call('HGET', key('windows', id), window_id)
if not window then return {'gone'} end
local tabs = cjson.decode(window).tabs + (redis.call('HGET', key('opening', id), kind) or 0)
if tabs >= within(client.max_tabs_per_window, ARGV[10]) then return {'full'} end
denial = ARGV[11] and deny_company(id, window_id, cjson.decode(ARGV[11]), nil, 0)
if denial then return {denial} end
reserve(id, kind)
return {'ok', false, client.epoch}
