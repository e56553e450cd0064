-- Takes a slot of one agent (promise 5). Restates reservation.py `deny_worker`.
-- ARGV: client id, now, presence window, expiry, its id, request. Taking wakes nobody.
local id = ARGV[2]
local client = read_client(id)
if not client then return {'gone'} end
local denial = deny_client(id, client, cjson.decode(ARGV[7]), ARGV[3], ARGV[4], 0)
if denial then return {denial} end
reserve(id, ARGV[6], 'slots', nil, ARGV[5])
return {'ok', false, client.epoch}
