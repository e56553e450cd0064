-- Ends an assignment if it is the one that holds; its context is dirty until reported (promise 9).
-- ARGV: client id, context id, token.
local id, context_id = ARGV[2], ARGV[3]
if not held(id, context_id, ARGV[4]) then return {'no'} end
release(id, context_id)
changed(id)
return {'ok', wake()}
