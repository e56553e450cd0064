-- Puts a parcel into a coordinator's box, if that is there and has room. ARGV: to whom, how many a
-- box holds, the parcel.
local box = key('parcels', ARGV[2])
if not is_there(ARGV[2]) or redis.call('XLEN', box) >= tonumber(ARGV[3]) then return {'no'} end
redis.call('XADD', box, '*', 'parcel', ARGV[4])
return {'ok'}
