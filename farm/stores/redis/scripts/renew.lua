-- Extends an assignment if it is the one that holds, also past its time (promises 8 and 9).
-- ARGV: client id, context id, token, now, expiry. Nobody waits for a renewal.
local id = ARGV[2]
local _, one = held(id, ARGV[3], ARGV[4])
if not one then return {'no'} end
one.renewed_at, one.expires_at = ARGV[5], ARGV[6]
put_assignment(one)
touch(id)
return {'ok', false, cjson.encode(one)}
