-- Tells whether the assignment under this token is the one that holds (promise 8).
-- ARGV: client id, context id, token.
if held(ARGV[2], ARGV[3], ARGV[4]) then return {'ok'} end
return {'no'}
