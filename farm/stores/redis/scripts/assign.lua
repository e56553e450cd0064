-- Takes a context with one slot (promise 4). Restates reservation.py `deny_assign`.
-- ARGV: client id, context id, request, now, presence window, expiry. Taking wakes nobody.
local id, context_id, request = ARGV[2], ARGV[3], cjson.decode(ARGV[4])
local client = read_client(id)
local denial = deny_assign(id, client, context_id, request, ARGV[5], ARGV[6], 0)
if denial then return {denial} end
return {'ok', false, hold(id, client, context_id, request, ARGV[5], ARGV[7])}
