-- Takes a slot of one agent (promise 5). Restates reservation.py `deny_worker`.
-- ARGV: client id, now, presence window, what `reserve` wants, request. Taking wakes nobody.
local id = ARGV[2]
local client = read_client(id)
if not client then return {'gone'} end
local denial = deny_client(id, client, cjson.decode(ARGV[9]), ARGV[3], ARGV[4], 0)
if denial then return {denial} end
reserve(id, 'slots')
return {'ok', false, client.epoch}
